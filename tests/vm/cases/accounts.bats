# A job of the machine's daemon has what its user's login has: limits, groups, rights, a
# session keyring; and users whom PAM refuses cannot run jobs. With the packages' own
# /etc/pam.d/berth and Debian's own rules.
load ../lib

# Output of a job of USER's: `in_job USER SCRIPT`. Submitted without PAM, so that equality with
# a login is not merely inherited from one.
in_job()
{
    guest "cd ~$1; setpriv --reuid $1 --regid \$(id -g $1) --init-groups env -i HOME=\$PWD PATH=/usr/bin \
        berth submit -W --gpus 0 -o /tmp/in_job.$1 --open-mode truncate -- '$2' >&2 && cat /tmp/in_job.$1"
}

# A job of alice's that has not started; its id is 1.
alice_holds() { as alice "berth submit --gpus 0 --hold -- 'id -Gn >ran'"; }

# The job is started but refused for this reason; once that has been mended, it runs.
refused_until()
{
    guest 'berth release 1; berth wait 1; [ ! -e /home/alice/ran ] && berth show 1' | grep -- "$1"
    guest "$2"
    as alice 'berth requeue 1; berth wait 1 && cat ran'
}

@test "a job has the limits that pam_limits gives a login" {
    guest 'printf "%s\n" "alice soft nofile 300" "alice hard nofile 400" "alice hard nproc 150" \
        "alice soft nproc 140" "alice - core 0" "@bob hard fsize 5000" >>/etc/security/limits.conf'
    local limits='prlimit --noheadings'
    as alice "$limits >login; berth submit -W --gpus 0 -o job -- $limits; cat login; diff login job"
    # Nor are its limits higher if its submitter had none.
    in_job alice "$limits" | awk '$1 ~ "NOFILE|NPROC|CORE" {print $(NF-2), $(NF-1)}' | sort | tr '\n' ' ' | grep -x '0 0 140 150 300 400 '
    in_job bob 'prlimit --noheadings -f -o HARD' | grep -x 5120000
    guest 'sed -i "s/hard nofile 400/hard nofile 350/" /etc/security/limits.conf'
    in_job alice 'prlimit --noheadings -n -o HARD' | grep -wx ' *350'
}

@test "an expired or locked account runs no job, with the reason, and runs it once the account is valid again" {
    guest 'echo alice:some-password | chpasswd'
    alice_holds
    guest 'chage -E 2000-01-01 alice'
    refused_until 'the account alice has expired' 'chage -E -1 alice'
    guest 'rm /home/alice/ran; usermod -L alice'
    as bob 'berth submit -W --gpus 0 -- true'
    guest 'berth requeue 1; berth wait 1; [ ! -e /home/alice/ran ] && berth show 1' | grep 'the account alice is locked'
    guest 'usermod -U alice; chage -d 0 alice; berth requeue 1; berth wait 1 && cat /home/alice/ran'
}

@test "pam_access and pam_nologin can forbid jobs too, with their own messages" {
    guest 'sed -i "1i account required pam_access.so" /etc/pam.d/berth; echo -- "-:alice:ALL" >>/etc/security/access.conf'
    alice_holds
    refused_until 'PAM (service berth) does not let alice run jobs: Permission denied' 'sed -i "/alice/d" /etc/security/access.conf'
    guest 'sed -i "1s/.*/account required pam_nologin.so/" /etc/pam.d/berth; echo "Down until noon." >/etc/nologin; rm /home/alice/ran'
    guest 'berth requeue 1; berth wait 1; [ ! -e /home/alice/ran ] && berth show 1' | grep 'does not let alice run jobs: Down until noon.'
    guest 'berth submit -W --gpus 0 -- true; rm /etc/nologin; berth requeue 1; berth wait 1 && cat /home/alice/ran'
}

@test "a job has its own session keyring, not the service's or another job's" {
    local ring='keyctl rdescribe @s; keyctl id @s; keyctl list @u >/dev/null && keyctl search @s keyring _uid.$(id -u)'
    in_job alice "$ring" >"$BATS_TEST_TMPDIR/1"
    in_job alice "$ring" >"$BATS_TEST_TMPDIR/2"
    cat "$BATS_TEST_TMPDIR"/[12]
    grep -E "^keyring;$(guest id -u alice);" "$BATS_TEST_TMPDIR/1"
    [ "$(sed -n 2p "$BATS_TEST_TMPDIR/1")" != "$(sed -n 2p "$BATS_TEST_TMPDIR/2")" ]
    # Each service of systemd has this key in its session keyring.
    for user in alice root; do fails in_job $user 'keyctl search @s user invocation_id'; done
    as alice "berth submit --gpus 0 -- 'keyctl add user own mine @s >key; keyctl add user shared hers @u; sleep 1000'"
    within 30 'test -s /home/alice/key'
    fails in_job alice 'keyctl search @s user own || keyctl print $(cat key)'
    fails in_job bob 'keyctl search @s user own || keyctl search @s user shared || keyctl print $(cat ~alice/key)'
    in_job alice 'keyctl print $(keyctl search @s user shared)' | grep -x hers
}

@test "users known only to nsswitch submit and run jobs under their names" {
    guest 'sed -i -E "s/^(passwd|group|shadow|gshadow):.*/& extrausers/" /etc/nsswitch.conf
        echo "dora:x:70001:70001::/home/dora:/bin/bash" >>/var/lib/extrausers/passwd
        echo "dora:*:19000:0:99999:7:::" >>/var/lib/extrausers/shadow
        printf "%s\n" dora:x:70001: lab:x:70002:dora >>/var/lib/extrausers/group
        install -d -o dora -g dora /home/dora; systemctl restart berthd'
    as dora 'berth submit -W --gpus 1 --login -- "id -un; id -Gn; echo \$HOME \$BERTH_USER; ulimit -Hn"'
    as dora 'berth logs @' | tr '\n' ' ' | grep '^dora dora lab /home/dora dora '
    as alice 'berth queue --all --user dora' | grep dora
    guest 'journalctl -u berthd BERTH_USER=dora -o cat' | grep 'job=1 event=ended'
    guest 'sed -i "s/^dora:.*/dora:*:19000:0:99999:7::1:/" /var/lib/extrausers/shadow'
    as alice 'berth submit --gpus 0 -W -- true'
    guest 'berth requeue 1; berth wait 1; berth show 1' | grep 'the account dora has expired'
}

# NAME ID: a user of systemd-userdb with the name and number of a group.
userdb_user()
{
    guest "mkdir -p /etc/userdb; cd /etc/userdb
        echo '{\"userName\":\"$1\",\"uid\":$2,\"gid\":$2,\"homeDirectory\":\"/home/$1\",\"shell\":\"/bin/bash\"}' >$1.user
        echo '{\"groupName\":\"$1\",\"gid\":$2}' >$1.group
        ln -s $1.user $2.user; ln -s $1.group $2.group; install -d -o $1 -g $1 /home/$1"
}

@test "users of systemd-userdb run jobs with their groups, and settings name them" {
    userdb_user erin 70003
    userdb_user lab 70004
    guest 'cd /etc/userdb; echo {} >erin:lab.membership; ! grep -E "erin|lab" /etc/passwd /etc/group
        mkdir -p /etc/berth; printf "%s\n" "users: {erin: {max_running: 1}}" "admin_group: lab" >/etc/berth/config.yaml
        systemctl restart berthd; ! journalctl -u berthd -o cat | grep "unknown user"'
    as erin 'berth submit -W --gpus 0 -- "id -un; id -gn; id -Gn; echo \$HOME \$BERTH_USER"; berth logs @' |
        tr '\n' ' ' | grep 'erin erin erin lab /home/erin erin '
    guest 'journalctl -u berthd BERTH_USER=erin -o cat' | grep 'job=1 event=ended'
    # The limit is that of the rule for erin, and the group makes erin an admin.
    as erin 'berth submit --gpus 0 -- sleep 1000; berth submit --gpus 0 -- true'
    as alice 'berth queue --all --user erin' | grep -E 'PENDING.*UserLimit'
    as alice 'berth submit --gpus 0 -- sleep 1000'
    as erin 'berth cancel 4 2 && { berth wait 2 3 4 || true; }'
    guest 'berth show 4 | grep CANCELLED; berth show 3 | grep COMPLETED'
    guest 'cd /etc/userdb; jq -c ".locked = true" erin.user >new; cat new >erin.user; rm new
        berth requeue 3; berth wait 3; berth show 3' | grep 'the account erin has expired'
}

@test "a job has the capabilities and signals of a login, and no_new_privs where that is set" {
    local rights='grep -E "^(Cap|NoNewPrivs|Seccomp|Sig(Blk|Ign|Cgt))" /proc/self/status; ls -l /proc/self/ns | sed "s/.* -> //" | grep -v "^total"; cat /proc/self/oom_score_adj'
    diff <(as alice "$rights") <(in_job alice "$rights")
    # Its umask is the submitter's; PAM gives a login another on Debian 13.
    [ "$(in_job alice 'umask; true')" = "$(guest umask)" ]
    in_job alice "$rights" | grep -E '^Cap(Inh|Prm|Eff|Amb)' | grep -vc 0000000000000000 | grep -x 0
    guest 'mkdir -p /etc/berth; echo "no_new_privs: on" >/etc/berth/config.yaml; systemctl reload berthd'
    in_job alice 'grep NoNewPrivs /proc/self/status' | grep -E '[[:space:]]1$'
}

@test "a job has its user's groups at its start, not at its submission" {
    guest 'groupadd old; groupadd new; usermod -aG old alice'
    alice_holds
    guest 'gpasswd -d alice old; usermod -aG new alice; berth release 1; berth wait 1'
    [ "$(guest cat /home/alice/ran)" = 'alice new' ]
}
