/* Accounts: those in /etc/passwd, and those that only getent finds. */
#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/account.h"

#define NOBODY_HAS 3999999999U

static void
write_program(const char *folder, const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", text);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

/* Puts a folder with our own getent and id first in PATH. */
static int
make_directory(void **state)
{
    static char folder[] = "/tmp/berth-account.XXXXXX";
    auto_free char *before = xstrdup(getenv("PATH"));
    if (!mkdtemp(folder))
        return -1;
    write_program(folder, "getent",
                  "[ \"$1 $2\" = 'passwd --' ] || exit 1\n"
                  "case $3 in 3999999999|far) echo 'far:x:3999999999:77::/far/home:/bin/far';;"
                  " *) exit 2;; esac");
    write_program(folder, "id", "[ \"$1 $2 $3\" = '-G -- far' ] && echo 77 78 4000000000");
    auto_free char *path = xasprintf("%s:%s", folder, before);
    setenv("PATH", path, 1);
    *state = folder;
    return 0;
}

static int
remove_directory(void **state)
{
    static const char *const names[] = {"getent", "id"};
    for (size_t i = 0; i < 2; i++) {
        auto_free char *path = xasprintf("%s/%s", (const char *)*state, names[i]);
        unlink(path);
    }
    return rmdir(*state);
}

static void
root_is_in_the_file(void **state)
{
    auto_account struct account a = ACCOUNT_INIT;
    auto_account struct account b = ACCOUNT_INIT;
    const struct passwd *pw = getpwuid(0);
    (void)state;
    assert_non_null(pw);
    assert_true(account_by_uid(0, &a));
    assert_string_equal(a.name, pw->pw_name);
    assert_string_equal(a.home, pw->pw_dir);
    assert_string_equal(a.shell, pw->pw_shell);
    assert_true(account_by_name(a.name, &b));
    assert_int_equal(b.uid, 0);
    assert_int_equal(b.gid, pw->pw_gid);
}

static void
others_are_asked_for(void **state)
{
    auto_account struct account a = ACCOUNT_INIT;
    auto_account struct account b = ACCOUNT_INIT;
    size_t n;
    (void)state;
    assert_true(account_by_uid(NOBODY_HAS, &a));
    assert_string_equal(a.name, "far");
    assert_string_equal(a.home, "/far/home");
    assert_string_equal(a.shell, "/bin/far");
    assert_true(account_by_name("far", &b));
    assert_true(b.uid == NOBODY_HAS && b.gid == 77);
    auto_free gid_t *groups = account_groups(&b, &n);
    assert_int_equal(n, 3);
    assert_true(groups[0] == 77 && groups[1] == 78 && groups[2] == 4000000000U);
}

static void
says_when_there_is_none(void **state)
{
    struct account a;
    struct account nobody = {.name = (char *)(uintptr_t) "nobody-at-all"};
    size_t n;
    (void)state;
    assert_false(account_by_name("nobody-at-all", &a));
    assert_int_equal(errno, ENOENT);
    assert_null(a.name);
    assert_false(account_by_uid(NOBODY_HAS - 1, &a));
    assert_null(account_groups(&nobody, &n));
    assert_int_equal(n, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_is_in_the_file),
        cmocka_unit_test(others_are_asked_for),
        cmocka_unit_test(says_when_there_is_none),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
