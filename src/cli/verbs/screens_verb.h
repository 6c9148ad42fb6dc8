/* GNU screen on the submitting user's side. */
#ifndef CLI_VERBS_SCREENS_VERB_H
#define CLI_VERBS_SCREENS_VERB_H

struct err;

/* 0 if there is a screen in PATH; else -1 with an error that says what to do. A job's own PATH
 * is mostly the same as this one; the check keeps a job from waiting an hour for a missing
 * program. */
int screens_need(struct err *e);

#endif
