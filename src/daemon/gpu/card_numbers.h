/* The mapping of numbers to GPUs, kept in the store, so that a number that a user typed means
 * the same GPU under the next daemon, whatever the driver's order is by then. */
#ifndef DAEMON_GPU_CARD_NUMBERS_H
#define DAEMON_GPU_CARD_NUMBERS_H

struct cards;

/* At start, before the probe has answered: if unfinished jobs may name GPUs, enters those of
 * this boot under their numbers, with state unknown. */
void cards_recall(struct cards *cards);

/* If the probe has not answered: also uses the list of an earlier boot, which is better than
 * none. */
void cards_recall_any(struct cards *cards);

/* cards_save: writes the list in the turn's transaction if it has changed. cards_saved: after
 * the commit. */
void cards_save(struct cards *cards);
void cards_saved(struct cards *cards);

#endif
