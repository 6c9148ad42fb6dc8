/* Which number is which GPU: kept in the store, so that a number that a user typed means the
 * same GPU under the next daemon, whatever the driver says by then. */
#ifndef DAEMON_GPU_CARD_NUMBERS_H
#define DAEMON_GPU_CARD_NUMBERS_H

struct cards;

/* At start, before the probe has answered: enters the GPUs under the numbers that they had in
 * this boot, all as unknown, where jobs wait or run that may name them. */
void cards_recall(struct cards *cards);

/* The probe has not answered: those of an earlier boot are better than none. */
void cards_recall_any(struct cards *cards);

/* Puts the list into the turn's transaction, if it has changed; and it is there. */
void cards_save(struct cards *cards);
void cards_saved(struct cards *cards);

#endif
