#!/usr/bin/env bats
# Notifications about jobs: commands, webhooks and mail, which run outside the daemon, do not
# delay jobs, and are delivered at least once whatever is killed.

load lib
load receiver

settings()
{
    mkdir -p "$BERTH_DIR"
    printf '%s\n' "$@" >"$BERTH_DIR/config.yaml"
}

# A mail program: it writes its arguments and the message to files in $WORK.
fake_mailer()
{
    cat >"$ROOT/sendmail" <<END
#!/bin/sh
n=0
while ! mkdir $WORK/taken.\$n 2>/dev/null; do n=\$((n + 1)); done
printf '%s\\n' "\$@" >$WORK/args.\$n
cat >$WORK/mail.\$n
[ ! -e $WORK/refuse ] || { rm $WORK/refuse; echo 'queue is full' >&2; exit 75; }
END
    chmod +x "$ROOT/sendmail"
    settings "sendmail: $ROOT/sendmail" "$@"
}

@test "hooks run at start, end and failure, in order, and get the job's number" {
    start_daemon
    export BERTH_ARRAY_TASK_ID=99 SECRET=kept
    berth submit -G 1 --name 'a "b' --on-start 'echo "start $BERTH_JOB_ID $BERTH_EVENT" >>told' \
        --on-end 'echo "end $BERTH_JOB_STATE $BERTH_EXIT_STATUS $BERTH_JOB_NAME $SECRET [$CUDA_VISIBLE_DEVICES] ${BERTH_ARRAY_TASK_ID-none} $BERTH_JOB_LOG" >>told; cat >event' \
        --on-fail 'echo "fail $BERTH_HOOK" >>told' --wait -- sh -c 'echo out; exit 3' || true
    wait_for_event kind=hook hook=on_fail state=done
    is "told" "$(cat told)" "start 1 started
end FAILED 3 a \"b kept [] none $BERTH_DIR/logs/1.log
fail on_fail"
    is "what it read" "$(json exit_status <event)" 3
    rm told
    berth submit -G 0 --on-end 'echo good >>told' --on-fail 'echo bad >>told' --wait -- true
    wait_for_event kind=hook job=2 hook=on_end state=done
    berth submit -G 0 --hold --on-end 'echo cancelled >>told' --on-fail 'echo bad >>told' -- true
    berth cancel 3
    wait_for_event kind=hook job=3 hook=on_end state=done
    is "told" "$(cat told)" "good
cancelled"
}

@test "a hook that fails or hangs is reported, ended with its processes, and delays nothing else" {
    settings 'hook_limit_s: 5'
    start_daemon
    berth submit -G 0 --on-end 'echo why it went wrong; exit 9' --wait -- true
    wait_for_event kind=hook job=1 state=failed exit_status=9 'text=why it went wrong'
    mkfifo never
    berth submit -G 0 --on-end 'trap "" TERM; setsid cat never & cat never' --wait -- true
    is "the next job" "$(berth submit -G 0 --wait --parsable -- true; job_field 3 state)" "3
COMPLETED"
    wait_for_event kind=hook job=2 state=failed exit_status=124 'text=it exceeded its time limit'
    has_not "processes" "$(for pid in $(marked_pids); do tr '\0' ' ' <"/proc/$pid/cmdline"; echo; done)" '^cat never'
    has "its log" "$(cat "$BERTH_DIR/logs/hooks.log")" "job=1 hook=on_end state=failed exit_status=9"
}

@test "hooks of the settings count for every job, and change on HUP" {
    settings "on_end: echo \"\$BERTH_JOB_ID\" >>$WORK/told"
    start_daemon
    berth submit -G 0 --on-end "echo own >>$WORK/told" --wait -- true
    wait_for_event kind=hook job=1 hook=on_end state=done
    "$AWAIT" until "$LIMIT" "berth status --json" hooks_waiting 0
    is "told" "$(sort told)" "1
own"
    settings "on_fail: echo \"failed \$BERTH_JOB_ID\" >>$WORK/told"
    background log berth daemon logs -f
    kill -HUP "$(daemon_pid)"
    wait_for_output log event=reloaded
    berth submit -G 0 --wait -- false || true
    wait_for_event kind=hook job=2 hook=on_fail state=done
    is "told" "$(sort told)" "1
failed 2
own"
}

@test "a webhook gets starts and ends as JSON, again after a failure that may pass" {
    serve 503 200
    start_daemon
    berth submit -G 0 --name w --webhook "http://127.0.0.1:$PORT/x?token=a%20b" --wait -- true
    wait_for_event kind=hook hook=webhook state=again 'text=HTTP status 503'
    wait_for_event kind=hook hook=webhook state=done tries=2
    wait_for_event kind=hook hook=webhook state=done tries=1
    has "posts" "$(cat "$ROOT/server.out")" '^post 503 /x\?token=a%20b application/json [0-9a-f]+-1 \{.*"kind":"started"'
    has "posts" "$(cat "$ROOT/server.out")" '^post 200 /x\?token=a%20b application/json [0-9a-f]+-1 \{.*"kind":"started"'
    has "posts" "$(cat "$ROOT/server.out")" '^post 200 .*-2 \{.*"state":"COMPLETED"'
    has_not "lists of processes" "$(berth daemon logs)" token
}

@test "the end of a job is not told before its start, which has to be told again; others' are" {
    serve 503 200
    start_daemon
    berth submit -G 0 --webhook "http://127.0.0.1:1/nobody" --wait -- true
    wait_for_event kind=hook job=1 state=again
    berth submit -G 0 --webhook "http://127.0.0.1:$PORT/" --wait -- true
    wait_for_event kind=hook job=2 state=done tries=2
    wait_for_event kind=hook job=2 state=done tries=1
    is 'what was told' "$(sed -n 's/^post \([0-9]*\) .*"kind":"\([a-z]*\)".*/\1 \2/p' "$ROOT/server.out" | paste -sd ' ')" \
        '503 started 200 started 200 ended'
    is 'what comes again' "$(events_with kind=hook job=1 state=done | wc -l)" 0
}

@test "daemon stop --cancel does not stay for what waits for another try, nor for what comes after that" {
    start_daemon
    berth submit -G 0 --webhook "http://127.0.0.1:1/nobody" -- sleep 600
    wait_for_event kind=hook job=1 state=again
    stop_daemon --cancel # within seconds: it retries for six minutes
    start_daemon
    is state "$(job_field 1 state)" CANCELLED
}

@test "a rejected webhook is not sent again, and an impossible URL is refused" {
    serve 404
    start_daemon
    berth submit -G 0 --webhook "http://127.0.0.1:$PORT/gone" --wait -- true
    wait_for_event kind=hook hook=webhook state=failed 'text=HTTP status 404' tries=1
    for url in ftp://x/ 'http://x/"' 'http://x/ y' http:// $'http://x/\nheader = "A: b"' file:///etc/passwd; do
        try berth submit -G 0 --webhook "$url" -- true
        is "exit status of $url" "$status" 2
        has "words of $url" "$err" "berth: webhook: "
    done
}

@test "mail is sent when requested, and no user's text becomes a header" {
    fake_mailer
    start_daemon
    berth submit -G 0 --mail-user 'me@example.org,root' --mail-type begin,fail --name $'x\xc3\xa4' --wait -- \
        sh -c "echo Bcc: you@example.org; exit 5" || true
    wait_for_event kind=hook hook=mail state=done
    "$AWAIT" until "$LIMIT" "berth status --json" hooks_waiting 0
    is "arguments" "$(tr '\n' ' ' <args.0)" "-i me@example.org root "
    python3 - mail.0 mail.1 <<'PY'
import email, email.policy, sys
start, end = [email.message_from_binary_file(open(f, "rb"), policy=email.policy.default) for f in sys.argv[1:]]
assert "started" in start["Subject"] and "(xä)" in start["Subject"], start["Subject"]
assert end["Subject"].startswith("berth ") and "failed" in end["Subject"], end["Subject"]
assert end["To"].replace(" ", "") == "me@example.org,root", end["To"]
assert end["Message-ID"] != start["Message-ID"]
assert set(k.lower() for k in end.keys()) == {"to", "subject", "message-id", "auto-submitted",
    "mime-version", "content-type", "content-transfer-encoding"}, end.keys()
body = end.get_content()
assert "exit 5" in body and "berth show 1" in body and "echo Bcc: you@example.org" in body, body
PY
    berth submit -G 0 --mail-type FAIL --wait -- true
    berth submit -G 0 --mail-user nobody --wait -- true
    wait_for_event kind=hook job=3 hook=mail state=done
    is "mails" "$(ls mail.* | wc -l)" 3
    for address in '-oQ/tmp' 'a b' $'a\nBcc: x' 'a@' '@b' 'a@b@c' '|sh' 'a;b'; do
        try berth submit -G 0 --mail-user "$address" -- true
        is "exit status of $address" "$status" 2
        has "words of $address" "$err" "is not a mail address"
    done
    try berth submit -G 0 --mail-type SOMETIMES -- true
    has "words" "$err" "unknown mail type 'SOMETIMES'; use BEGIN, END, FAIL"
}

@test "a job that is ended for what it used beyond its VRAM is a failure to whoever wants mail of those" {
    fake_mailer 'on_exceed: kill'
    start_daemon
    berth submit --vram 8000 --mail-user me@example.org --mail-type FAIL -- berth simjob --vram 12000 --ramp 0 --hold 1000
    wait_for_event kind=hook job=1 hook=mail state=done
    is "its state" "$(job_field 1 state)" FAILED
    is "mails" "$(ls mail.* | wc -l)" 1
    python3 - mail.0 <<'PY'
import email, email.policy, sys
end = email.message_from_binary_file(open(sys.argv[1], "rb"), policy=email.policy.default)
assert end["To"] == "me@example.org" and "failed" in end["Subject"], end.items()
assert "used 11.7 GiB of 7.8 GiB VRAM declared; declare --vram 12.9G" in end.get_content(), end.get_content()
PY
}

@test "#SBATCH --mail lines count; a busy mailer is tried again; an array sends one mail" {
    fake_mailer
    start_daemon
    printf '%s\n' '#!/bin/sh' '#SBATCH --mail-type=END,TIME_LIMIT_90' '#SBATCH --mail-user=me' 'true' >job.sh
    : >refuse
    try berth submit --ignore-unsupported -G 0 --wait job.sh
    has "words" "$err" "no mail is sent for TIME_LIMIT_90"
    wait_for_event kind=hook hook=mail state=again exit_status=75 'text=queue is full'
    wait_for_event kind=hook hook=mail state=done tries=2
    is "the same message" "$(grep Message-ID mail.0)" "$(grep Message-ID mail.1)"
    rm mail.* args.*
    berth submit -G 0 --array 0-2 --mail-user me --mail-type ALL --wait -- true
    "$AWAIT" until "$LIMIT" "berth status --json" hooks_waiting 0
    is "subjects" "$(sed -n 's/^Subject: berth [^ ]* //p' mail.* | sort)" "job 2 completed
job 2_0 started"
}

@test "without a mailer submit says so immediately, and the job runs" {
    settings "sendmail: $ROOT/nowhere"
    start_daemon
    try berth submit -G 0 --mail-user me --wait -- true
    is "exit status" "$status" 0
    has "words" "$err" "this machine cannot send mail, because it has no sendmail at $ROOT/nowhere"
    wait_for_event kind=hook hook=mail state=failed 'text=there is no sendmail on this machine'
}

@test "a hook runs in a group with the limits of its job, and leaves nothing behind" {
    local enforced
    start_daemon
    enforced=$(berth status --json | json daemon.confinement.enforced.memory)
    [ "$(berth status --json | json daemon.confinement.enforced.kill)" = true ] || skip "no groups can be made here"
    # shellcheck disable=SC2016 # the hook's shell is to expand it
    berth submit -G 0 --mem 64M --wait --on-end 'cat /proc/self/cgroup >groups
        setsid env -i sleep 1000 & echo $! >left
        python3 -c "x = bytearray(200 << 20)" && touch had' -- true
    wait_for_event kind=hook job=1 hook=on_end >/dev/null
    has "its groups" "$(cat groups)" '/berth-[0-9a-f]{8}/hook-'
    if is_alive "$(cat left)"; then fail_with "what it had started lives on"; fi
    [ "$enforced" = false ] || [ ! -e had ] || fail_with "200 MiB were had with --mem 64M"
}

@test "hooks are delivered when the daemon is killed at any moment" {
    start_daemon
    mkfifo gate
    berth submit -G 0 --on-end 'echo told >>told; cat gate' --wait -- true
    wait_for_line told
    kill_daemon
    start_daemon
    # The first could not report completion: it is repeated, and the waiting process is
    # released. Two may wait, and one of them reads only end of file.
    background open sh -c "trap '' PIPE; while :; do echo go >gate; done"
    wait_for_event kind=hook job=1 hook=on_end state=done
    [ "$(grep -c told told)" -ge 1 ] || fail_with "nobody was told"
    is "left to do" "$(berth status --json | json hooks_waiting)" 0
    stop_daemon
    berth daemon start --sim 2 >/dev/null
    is "left to do after a restart" "$(berth status --json | json hooks_waiting)" 0
}

wait_for_line()
{
    "$AWAIT" output "$LIMIT" "$1" . >/dev/null
}

@test "a hook killed before its result is recorded runs again, after a crash of the daemon too" {
    BERTH_CRASH_AT=daemon-hook-sent timeout "$LIMIT" berth daemon start --sim 1 >/dev/null
    berth submit -G 0 --on-end "echo told >>$WORK/told" --wait -- true || true
    start_daemon
    wait_for_event kind=hook job=1 hook=on_end state=done
    [ "$(grep -c told told)" -ge 1 ] || fail_with "nobody was told"
    stop_daemon
    BERTH_CRASH_AT=hook-before-report timeout "$LIMIT" berth daemon start --sim 1 >/dev/null
    background log berth daemon logs -f
    berth submit -G 0 --on-end "echo again >>$WORK/told" --wait -- true
    wait_for_output log 'job=2 event=hook-lost tries=2'
    is "how often it ran" "$(grep -c again told)" 2
}

# The programs are copied, so that one of them can be removed.
@test "what no process can be had for is no try of a hook, which runs once there is one" {
    local programs nursery
    programs=$(dirname "$(command -v berthd)")
    mkdir -p "$ROOT/root/libexec" "$ROOT/root/bin"
    cp "$programs"/berth "$programs"/berthd "$ROOT/root/bin"
    cp -r "$programs/../libexec/berth" "$ROOT/root/libexec"
    PATH=$ROOT/root/bin:$PATH
    mkfifo end
    start_daemon
    background log berth daemon logs -f
    berth submit -G 0 --on-end "echo told >>$WORK/told" -- sh -c 'read line <end'
    wait_for_event kind=started job=1
    nursery=$(for pid in $(marked_pids); do
        if [ "$(cat "/proc/$pid/comm")" = berth-nursery ]; then echo "$pid"; fi
    done)
    cd "$ROOT/root/libexec/berth"
    mv berth-shepherd kept
    printf '#!/bin/sh\nexit 1\n' >berth-shepherd
    chmod +x berth-shepherd
    cd "$WORK"
    kill -KILL "$nursery"
    "$AWAIT" pid "$LIMIT" "$nursery"
    echo go >end
    wait_for_output log 'job=1 event=hook-not-sent'
    mv "$ROOT/root/libexec/berth/kept" "$ROOT/root/libexec/berth/berth-shepherd"
    wait_for_event kind=hook job=1 hook=on_end state=done tries=1
    is "how often it ran" "$(grep -c told told)" 1
}

@test "only one's own hooks and webhooks are shown" {
    start_daemon
    berth submit -G 0 --hold --webhook https://example.org/secret --on-end 'true' --mail-user me -- true
    is "webhook" "$(job_field 1 webhook)" https://example.org/secret
    is "mail" "$(job_field 1 mail_type)" END
    has "show" "$(berth show 1)" "https://example.org/secret"
    stop_daemon
    start_daemon
    is "on_end after a restart" "$(job_field 1 on_end)" true
}
