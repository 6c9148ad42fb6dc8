/* Parses the CSV that nvidia-smi prints with --format=csv,noheader,nounits. Pure and total:
 * any input yields GPUs, processes or an error, never a crash. */
#ifndef GPU_SMI_CSV_H
#define GPU_SMI_CSV_H

#include <stddef.h>

struct backend_machine;
struct backend_sample;
struct err;

/* The columns that smi_csv_gpus reads, for --query-gpu. */
#define SMI_CSV_GPU_COLUMNS                                                                    \
    "index,uuid,memory.total,memory.used,utilization.gpu,temperature.gpu,name,pci.bus_id,"     \
    "compute_mode"
#define SMI_CSV_PROC_COLUMNS "gpu_uuid,pid,used_memory"
/* Queried separately, because an older nvidia-smi would reject the whole query for it. */
#define SMI_CSV_CC_COLUMNS "uuid,compute_cap"

/* Reads GPUs and their use, in the order of the lines: use[i] belongs to cards[i]. A GPU whose
 * index, UUID or size is not a value ("[Unknown Error]", a lost GPU) is omitted. "No devices
 * were found" and an empty text mean no GPUs. Any other text is an error that quotes it.
 * Leaves m's links and driver unchanged. */
int smi_csv_gpus(const char *text, size_t n, struct backend_machine *m,
                 struct backend_sample *s, struct err *e);

/* Sets the compute capabilities ("8.6") of m's GPUs by UUID; ignores any other line. */
void smi_csv_cc(const char *text, size_t n, struct backend_machine *m);

/* Adds processes to the use of m's GPUs by UUID, and marks every GPU's list as known, except
 * after "[Not Supported]". Processes on unknown GPUs are omitted. */
int smi_csv_procs(const char *text, size_t n, const struct backend_machine *m,
                  struct backend_sample *s, struct err *e);

/* Removes GPUs from m that "nvidia-smi -L" (text) lists with MIG instances, and notes them as
 * left out: the CSV lacks the memory of instances. */
void smi_csv_leave_out_divided(const char *text, struct backend_machine *m);

#endif
