/* Names of screen sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/request.h"
#include "spec/screenname.h"

static void
test_names(void **state)
{
    (void)state;
    static const struct {
        char *argv[4], *command, *name;
        uint64_t cards;
        const char *want;
    } rows[] = {
        {{"python", "a.py", "--mode", "train"}, NULL, NULL, 1, "gpujob_0_train_12"},
        {{"python", "--mode=eval", NULL}, NULL, "n", 0xb, "gpujob_0,1,3_eval_12"},
        {{"python", "--mode", NULL}, NULL, NULL, 1, "gpujob_0_unknown_12"},
        {{"python", "--mode", "", NULL}, NULL, "my run", 2, "gpujob_1_my_run_12"},
        {{NULL}, "a.py --mode 'fine tune' x", NULL, 1, "gpujob_0_fine_12"},
        {{NULL}, "a.py --mode=\"x;y\"", NULL, 1, "gpujob_0_x_12"},
        {{NULL}, "a.py --model big --moderate --mode", "x/../y", 1, "gpujob_0_x_y_12"},
        {{NULL}, "no--mode a", NULL, 0, "gpujob_cpu_unknown_12"},
        {{NULL}, "x --mode ../../etc.passwd", NULL, 1, "gpujob_0__etc_passwd_12"},
        {{NULL},
         "x --mode abcdefghijklmnopqrstuvwxyz",
         NULL,
         1,
         "gpujob_0_abcdefghijklmnopqrst_12"},
        {{NULL},
         "x --mode t",
         NULL,
         ~UINT64_C(0),
         "gpujob_0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,_12"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        auto_buf struct buf out = BUF_INIT;
        struct request r;
        char *argv[] = {rows[i].argv[0], rows[i].argv[1], rows[i].argv[2], rows[i].argv[3],
                        NULL};
        request_init(&r);
        r.argv = argv[0] ? argv : NULL;
        r.command = rows[i].command;
        r.name = rows[i].name;
        screen_name(&r, rows[i].cards, 12, &out);
        if (strcmp(buf_str(&out), rows[i].want) != 0)
            fail_msg("row %zu: '%s', expected '%s'", i, buf_str(&out), rows[i].want);
        assert_true(out.len <= SCREEN_NAME_MAX + 1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
