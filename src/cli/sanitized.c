/* For builds with AddressSanitizer only. Tests start `berth` by the thousand, and to look for
 * leaks at each exit would take longer than all else that it does. So it looks where
 * ASAN_OPTIONS says so (leak_check_at_exit=1); all other programs always do. */

const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
    return "leak_check_at_exit=0";
}
