/* GNU screen, from the submitting user's side. */
#ifndef CLI_VERBS_SCREENS_VERB_H
#define CLI_VERBS_SCREENS_VERB_H

struct err;

/* Whether there is a screen in PATH; else -1 with what to do. Jobs bring their own PATH, which
 * is mostly this one; said before a job waits an hour for a program that is not there. */
int screens_need(struct err *e);

#endif
