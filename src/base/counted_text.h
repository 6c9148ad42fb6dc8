/* Text that many own: one copy, counted, freed by the last. For what thousands of jobs have
 * alike (their folder, their owner's name); not for more than one thread. */
#ifndef BASE_COUNTED_TEXT_H
#define BASE_COUNTED_TEXT_H

/* A copy with one owner; NULL stays NULL. What these return may go to shared_* only, never to
 * free. */
char *shared_new(const char *text);
char *shared_ref(char *shared); /* one owner more; returns it */
void shared_free(char *shared); /* one owner less; NULL is fine */

/* *field becomes another owner of *last when both say the same; else *last becomes another
 * owner of *field. So a run of equal texts is kept once. */
void shared_join(char **field, char **last);

#endif
