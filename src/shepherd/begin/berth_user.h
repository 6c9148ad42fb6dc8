/* What the shepherd (identity.c) and berth-user (berth_user.c) say to each other over one
 * socket pair of packets: one question, one answer, each a row of NUL-terminated strings.
 *
 *   uid, umask (octal), "own" or "named" (whose choice the log's place was), "read" or
 *   "write" (whether the log is to be read as well), the name the user had when the job came
 *   ("": not known), working folder, log ("": none), PAM's service ("": it is not asked),
 *   "refuse" or "run" (what becomes of jobs of a locked account), file for errors ("": none),
 *   "append" or "truncate" (log and errors are emptied first)
 *   USER_BY_NAME instead of a uid: the name is a list with commas, of which the first account
 *   that there is counts; no rules for accounts apply to it
 *   USER_YES, name, home, shell, uid, gid, groups ("4,27"), limits of a login (sys/rlimits.h) -
 *   with the folder, the log and the file for errors, open
 *   USER_NO, errno, words, what was being done (enum step of blame.h, as a number) */
#ifndef SHEPHERD_BEGIN_BERTH_USER_H
#define SHEPHERD_BEGIN_BERTH_USER_H

#define USER_FD          3
#define USER_MESSAGE_MAX 131072
#define USER_YES         "yes"
#define USER_NO          "no"
#define USER_BY_NAME     "-"

#endif
