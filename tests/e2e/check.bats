#!/usr/bin/env bats
# ./check counts exactly the tests that were run: tools/count-tests on the output of runners,
# and steps that run nothing.

load lib

# A checkout with only ./check and what it calls: `checkout` is then the current folder.
case_setup()
{
    mkdir -p checkout/tools
    cp "$BERTH_SOURCE/check" checkout/
    # If a test ends before the timer of its limit has set its trap, bats (1.8, 1.11) leaves the timer's
    # `sleep` behind, and the output has no end before that has.
    sed -i 's/^test_limit=.*/test_limit=60/' checkout/check
    cp "$BERTH_SOURCE/tools/count-tests" checkout/tools/
    printf '#!/bin/sh\n' >checkout/tools/install-deps
    chmod +x checkout/tools/install-deps
    cd checkout
}

# A build NAME that looks finished and up to date to ./check.
pretend_build()
{
    mkdir -p "build/$1/root/bin"
    touch "build/$1/done"
    printf 'rule r\n  command = touch $out\nbuild made: r source\n' >"build/$1/build.ninja"
    touch "build/$1/source"
    ninja -C "build/$1" >/dev/null
}

@test "passed, failed, skipped and missing tests are distinguished, with the reasons to skip" {
    printf '1..4\nok 1 a\nok 2 b # skip only root can\nnot ok 3 c\n# words\n1..1\nok 1 d # skip only root can\n' >log
    is tap "$(tools/count-tests tap log)" "1 2 2
2 tests: only root can"
    mkdir -p b/meson-logs
    cat >b/meson-logs/testlog.json <<'JSON'
{"name": "one", "result": "OK", "stdout": "", "stderr": "[ RUN      ] x\n[       OK ] x\n[ RUN      ] y\n[  SKIPPED ] y\n"}
{"name": "two", "result": "ERROR", "stdout": "[ RUN      ] x\n[       OK ] x\n"}
{"name": "three", "result": "SKIP", "stdout": "there is no such thing here\n"}
JSON
    is meson "$(tools/count-tests meson b)" "2 1 2
one, y: what it needs is not here
three: there is no such thing here"
}

@test "a step that runs no test has failed, and so has one whose programs are old or missing" {
    try ./check docs
    is status "$status" 1
    has 'no build' "$out" '^docs +FAILED  not run: there is no gcc build'
    pretend_build gcc
    mkdir -p tests/docs
    try ./check docs
    is 'status with no test' "$status" 1
    has 'no test' "$out" '^0 passed, 1 failed$'
    printf '@test "one" { true; }\n@test "two" { skip "no such luck"; }\n' >tests/docs/some.bats
    try ./check docs
    is 'status with a test' "$status" 0
    is 'the end' "$(tail -n 3 <<<"$out")" "skipped:
  docs       two: no such luck
1 passed, 0 failed, 1 skipped"
    # Another second, or the file may look as old as what was made of it.
    touch -d '+2 seconds' build/gcc/source
    try ./check docs
    has 'old programs' "$out" '^docs +FAILED  not run: the gcc build is older than its sources; ./check gcc first$'
}
