/* The protocol between the supervisor (identity.c) and berth-user (berth_user.c): one question
 * and one answer over a SEQPACKET socket pair, each a series of NUL-terminated strings.
 *
 *   Question: uid, umask (octal), "own" or "named" (who chose the log's path: the instance or
 *   the job), "read" or "write" (whether the log must also be readable), the user's name when
 *   the job was submitted ("": not known), working folder, log ("": none), PAM's service ("":
 *   do not ask PAM), "refuse" or "run" (jobs of a locked account), file for standard error ("":
 *   none), "append" or "truncate" (log and error file)
 *
 *   With USER_BY_NAME instead of a uid, the name is a comma-separated list, of which the first
 *   existing account is used; no account rules apply
 *
 *   Success: USER_YES, name, home, shell, uid, gid, groups ("4,27"), limits of a login
 *   (sys/rlimits.h), with open descriptors of the folder, the log and the error file
 *
 *   Failure: USER_NO, errno, words, the failed step (enum step of blame.h, as a number) */
#ifndef SHEPHERD_BEGIN_BERTH_USER_H
#define SHEPHERD_BEGIN_BERTH_USER_H

#define USER_FD          3
#define USER_MESSAGE_MAX 131072
#define USER_YES         "yes"
#define USER_NO          "no"
#define USER_BY_NAME     "-"

#endif
