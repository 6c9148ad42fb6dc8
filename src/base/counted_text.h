/* Reference-counted text: one copy with many owners, freed by the last. For values that
 * thousands of jobs share (the working folder, the owner's name). Not thread-safe. */
#ifndef BASE_COUNTED_TEXT_H
#define BASE_COUNTED_TEXT_H

/* A copy with one owner; NULL stays NULL. Pass the result only to shared_* functions, never to
 * free. */
char *shared_new(const char *text);
char *shared_ref(char *shared); /* adds an owner; returns its argument */
void shared_free(char *shared); /* removes an owner; NULL is fine */

/* If both texts are equal, *field becomes another owner of *last; else *last becomes another
 * owner of *field. A run of equal texts is thus stored once. */
void shared_join(char **field, char **last);

#endif
