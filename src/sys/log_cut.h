/* The line that stands in a log where output was cut out of it: the supervisor writes it, and
 * a client that follows the log looks for it. */
#ifndef SYS_LOG_CUT_H
#define SYS_LOG_CUT_H

#define LOG_CUT_BEGIN "\nberth: "
/* Behind a number, and before the reason. */
#define LOG_CUT_WORDS      " MiB of output were cut out of this log here: "
#define LOG_CUT_LINE_BYTES 256 /* it is shorter */

#endif
