/* The line that marks a cut in a log. The supervisor writes it; a client that follows the log
 * looks for it. */
#ifndef SYS_LOG_CUT_H
#define SYS_LOG_CUT_H

#define LOG_CUT_BEGIN "\nberth: "
/* Between the amount and the reason. */
#define LOG_CUT_WORDS      " MiB of output were cut out of this log here: "
#define LOG_CUT_LINE_BYTES 256 /* upper bound on its length */

#endif
