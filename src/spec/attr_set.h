/* The setters of attr.c's table: text into one field of a request. Of no interest to anybody
 * else. Errors lack the attribute's name; attr_assign puts it in front. */
#ifndef SPEC_ATTR_SET_H
#define SPEC_ATTR_SET_H

struct err;
struct request;
struct when_clock;

#define ATTR_SETTERS(X)                                                                        \
    X(vram)                                                                                    \
    X(gpus)                                                                                    \
    X(share)                                                                                   \
    X(gpu_ids)                                                                                 \
    X(devices)                                                                                 \
    X(gpu_type)                                                                                \
    X(min_vram)                                                                                \
    X(exclusive)                                                                               \
    X(max_used)                                                                                \
    X(max_load)                                                                                \
    X(margin)                                                                                  \
    X(idle)                                                                                    \
    X(placement)                                                                               \
    X(cpus)                                                                                    \
    X(mem)                                                                                     \
    X(time)                                                                                    \
    X(on_timeout)                                                                              \
    X(max_requeues)                                                                            \
    X(signal)                                                                                  \
    X(grace)                                                                                   \
    X(priority)                                                                                \
    X(preemptible)                                                                             \
    X(interactive)                                                                             \
    X(pty)                                                                                     \
    X(screen)                                                                                  \
    X(env_setup)                                                                               \
    X(conda)                                                                                   \
    X(login)                                                                                   \
    X(after)                                                                                   \
    X(after_any)                                                                               \
    X(after_failed)                                                                            \
    X(array)                                                                                   \
    X(hold)                                                                                    \
    X(unique)                                                                                  \
    X(cancel)                                                                                  \
    X(retries)                                                                                 \
    X(oom_retries)                                                                             \
    X(requeue)                                                                                 \
    X(name)                                                                                    \
    X(tag)                                                                                     \
    X(log)                                                                                     \
    X(error)                                                                                   \
    X(log_max)                                                                                 \
    X(open_mode)                                                                               \
    X(comment)                                                                                 \
    X(chdir)                                                                                   \
    X(env)                                                                                     \
    X(slurm_env)                                                                               \
    X(on_start)                                                                                \
    X(on_end)                                                                                  \
    X(on_fail)                                                                                 \
    X(webhook)                                                                                 \
    X(mail_user)                                                                               \
    X(mail_type)

#define ATTR_DECLARE(name)                                                                     \
    int attr_set_##name(struct request *r, const char *value, struct err *e);
ATTR_SETTERS(ATTR_DECLARE)
#undef ATTR_DECLARE

int attr_set_begin(struct request *r, const char *value, const struct when_clock *clock,
                   struct err *e);

#endif
