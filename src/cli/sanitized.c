/* For builds with AddressSanitizer only. Tests start `berth` thousands of times, and a leak
 * check at each exit would take longer than all its other work. So it checks only if
 * ASAN_OPTIONS says so (leak_check_at_exit=1); all other programs always check. */

const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
    return "leak_check_at_exit=0";
}
