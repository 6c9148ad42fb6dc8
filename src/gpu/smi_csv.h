/* The CSV that nvidia-smi prints with --format=csv,noheader,nounits. Pure and total: any
 * bytes give cards, processes or an error, never a crash. */
#ifndef GPU_SMI_CSV_H
#define GPU_SMI_CSV_H

#include <stddef.h>

struct backend_machine;
struct backend_sample;
struct err;

/* The columns smi_csv_gpus reads, as --query-gpu wants them. */
#define SMI_CSV_GPU_COLUMNS                                                                    \
    "index,uuid,memory.total,memory.used,utilization.gpu,temperature.gpu,name,pci.bus_id,"     \
    "compute_mode"
#define SMI_CSV_PROC_COLUMNS "gpu_uuid,pid,used_memory"
/* Asked for apart: an older program refuses the whole query for it. */
#define SMI_CSV_CC_COLUMNS "uuid,compute_cap"

/* Cards and their use, in the order of the lines: use[i] is cards[i]. A card whose index,
 * UUID or size is not a value ("[Unknown Error]", a card that is lost) is left out. "No
 * devices were found" and an empty text are no cards. Text that is neither is an error that
 * quotes it. Links and driver of m are left alone. */
int smi_csv_gpus(const char *text, size_t n, struct backend_machine *m,
                 struct backend_sample *s, struct err *e);

/* Adds compute capabilities ("8.6") to the cards of m by UUID; any other line is ignored. */
void smi_csv_cc(const char *text, size_t n, struct backend_machine *m);

/* Adds processes to the cards of m by UUID, and marks the list of every card as known, but
 * for "[Not Supported]". Processes on cards that m does not have are left out. */
int smi_csv_procs(const char *text, size_t n, const struct backend_machine *m,
                  struct backend_sample *s, struct err *e);

/* Takes GPUs off m that "nvidia-smi -L" (text) lists with MIG instances, and notes them as
 * left out: the tables do not have the instances' memory. */
void smi_csv_leave_out_divided(const char *text, struct backend_machine *m);

#endif
