/* The three scripts of `berth completion`. Each contains every verb's options and the words
 * that may follow it; it asks the daemon for job ids when they are needed, and falls back to
 * the shell's own completion of file names. */
#include <string.h>

#include "base/buf.h"
#include "cli/common/opt.h"
#include "cli/verbs/completion.h"

#define HEAD                                                                                   \
    "# Completion of berth's command line for %s, as `berth completion %s` prints it.\n"
/* sed skips the header, the first line. */
#define JOBS "berth queue --format id 2>/dev/null | sed -nE \"s/^ *([0-9]+(_[0-9]+)?).*/\\1/p\""
/* The global options. */
#define EVERYWHERE "--dir --socket --json --help"

/* True for options to be completed: not for titles and unlisted options. */
static bool
is_listed(const struct opt *o)
{
    return o->name[0] && o->help;
}

static const struct opt *
options_of(const struct completion *c)
{
    static const struct opt none = {0};

    return c->page && c->page->options ? c->page->options : &none;
}

/* --- bash --- */

static void
bash_verb(const struct completion *c, struct buf *out)
{
    buf_addf(out, "    %s)\n        options='", c->verb);
    for (const struct opt *o = options_of(c); o->name; o++)
        if (is_listed(o))
            buf_addf(out, "--%s ", o->name);
    buf_adds(out, EVERYWHERE "'\n        valued='");
    for (const struct opt *o = options_of(c); o->name; o++)
        if (is_listed(o) && o->value && o->value[0] != '[') {
            buf_addf(out, " --%s", o->name);
            if (o->letter)
                buf_addf(out, " -%c", o->letter);
        }
    buf_adds(out, " '\n        words='");
    for (char *const *word = c->words; *word; word++)
        buf_addf(out, "%s%s", word == c->words ? "" : " ", *word);
    buf_adds(out, "'\n        columns='");
    for (const struct opt *o = options_of(c); o->name; o++)
        if (is_listed(o) && completion_lists_columns(c, o))
            buf_addf(out, " --%s -%c", o->name, o->letter);
    buf_addf(out, " ' names='%s'", c->columns ? c->columns : "");
    buf_addf(out, "\n        jobs=%d ;;\n", c->takes_jobs);
}

void
completion_write_bash(const struct completion *all, size_t n, struct buf *out)
{
    buf_addf(out, HEAD, "bash", "bash");
    buf_adds(out, "_berth()\n{\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                  "    local verb='' options='" EVERYWHERE "' valued='' words='' jobs=0 i\n"
                  "    local columns='' names='' before\n"
                  "    COMPREPLY=()\n"
                  "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "        case ${COMP_WORDS[i]} in\n"
                  "        --dir | --socket) ((i++)) ;;\n"
                  "        -*) ;;\n"
                  "        *) verb=${COMP_WORDS[i]}; break ;;\n"
                  "        esac\n"
                  "    done\n"
                  "    case $verb in\n");
    buf_adds(out, "    '') words='");
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%s%s", i ? " " : "", all[i].verb);
    buf_adds(out, "' ;;\n");
    for (size_t i = 0; i < n; i++)
        bash_verb(&all[i], out);
    buf_adds(out, "    esac\n"
                  "    case $columns in *\" $prev \"*)\n"
                  "        before=${cur%\"${cur##*,}\"}\n"
                  "        compopt -o nospace 2>/dev/null\n"
                  "        mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$names\" -- "
                  "\"${cur##*,}\")\n"
                  "        return ;;\n"
                  "    esac\n"
                  "    case \" --dir --socket $valued\" in *\" $prev \"*) return ;; esac\n"
                  "    if [[ $cur == -* ]]; then\n"
                  "        words=$options\n"
                  "    elif ((jobs)); then\n"
                  "        words=\"$words $(" JOBS ")\"\n"
                  "    fi\n"
                  "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                  "}\n"
                  "complete -o default -F _berth berth\n");
}

/* --- zsh --- */

/* Text for single quotes, with a backslash before colons or brackets that are special. */
static void
zsh_text(struct buf *out, const char *s, const char *special)
{
    for (; *s; s++) {
        if (*s == '\'')
            buf_adds(out, "'\\''");
        else if (strchr(special, *s))
            buf_addf(out, "\\%c", *s);
        else
            buf_addc(out, *s);
    }
}

static void
zsh_option(const struct completion *c, const struct opt *o, struct buf *out)
{
    if (o->letter)
        buf_addf(out, " \\\n            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name,
                 o->letter, o->name);
    else
        buf_addf(out, " \\\n            '--%s%s[", o->name,
                 o->value && o->value[0] == '[' ? "=-" : "");
    zsh_text(out, o->help, "[]:\\");
    buf_addc(out, ']');
    if (o->value) {
        buf_adds(out, o->value[0] == '[' ? "::" : ":");
        zsh_text(out, o->value, ":\\");
        if (completion_lists_columns(c, o))
            buf_addf(out, ":_values -s , column%s", c->columns);
        else
            buf_adds(out, ":_files");
    }
    buf_addc(out, '\'');
}

static void
zsh_verb(const struct completion *c, struct buf *out)
{
    buf_addf(out, "    %s)\n        _arguments", c->verb);
    for (const struct opt *o = options_of(c); o->name; o++)
        if (is_listed(o))
            zsh_option(c, o, out);
    buf_adds(out, " \\\n            $everywhere \\\n            '*:");
    if (c->words[0]) {
        buf_adds(out, "word:(");
        for (char *const *word = c->words; *word; word++)
            buf_addf(out, "%s%s", word == c->words ? "" : " ", *word);
        buf_adds(out, ")");
    } else {
        buf_adds(out, c->takes_jobs ? "job:_berth_jobs" : "file:_files");
    }
    buf_adds(out, "' ;;\n");
}

void
completion_write_zsh(const struct completion *all, size_t n, struct buf *out)
{
    buf_adds(out, "#compdef berth\n");
    buf_addf(out, HEAD, "zsh", "zsh");
    buf_adds(out,
             "_berth_jobs()\n{\n"
             "    local -a jobs=(${(f)\"$(" JOBS ")\"})\n"
             "    compadd -a jobs\n"
             "}\n"
             "_berth()\n{\n"
             "    local -a everywhere=(\n"
             "        '--dir[the instance in DIR]:DIR:_files -/' '--socket[the daemon at this "
             "socket]:PATH:_files'\n"
             "        '--json[data as JSON]' '(-h --help)'{-h,--help}'[help]')\n"
             "    local -a verbs=(\n");
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "        '%s:", all[i].verb);
        zsh_text(out, all[i].help, ":\\");
        buf_adds(out, "'\n");
    }
    buf_adds(out, "    )\n"
                  "    if ((CURRENT == 2)); then\n"
                  "        _describe verb verbs\n"
                  "        return\n"
                  "    fi\n"
                  "    local verb=$words[2]\n"
                  "    shift words\n"
                  "    ((CURRENT--))\n"
                  "    case $verb in\n");
    for (size_t i = 0; i < n; i++)
        zsh_verb(&all[i], out);
    buf_adds(
        out,
        "    esac\n"
        "}\n"
        "if [ \"$funcstack[1]\" = _berth ]; then _berth \"$@\"; else compdef _berth berth; "
        "fi\n");
}

/* --- fish --- */

static void
fish_text(struct buf *out, const char *s)
{
    buf_addc(out, '\'');
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\')
            buf_addc(out, '\\');
        buf_addc(out, *s);
    }
    buf_addc(out, '\'');
}

static void
fish_verb(const struct completion *c, struct buf *out)
{
    buf_addf(out, "complete -c berth -n __fish_use_subcommand -f -a %s -d ", c->verb);
    fish_text(out, c->help);
    buf_addc(out, '\n');
    for (const struct opt *o = options_of(c); o->name; o++) {
        if (!is_listed(o))
            continue;
        buf_addf(out, "complete -c berth -n '__fish_seen_subcommand_from %s' -l %s", c->verb,
                 o->name);
        if (o->letter)
            buf_addf(out, " -s %c", o->letter);
        if (o->value && o->value[0] != '[')
            buf_adds(out, " -r");
        if (completion_lists_columns(c, o))
            buf_addf(out, " -f -a '(__fish_append , %s)'", c->columns + 1);
        buf_adds(out, " -d ");
        fish_text(out, o->help);
        buf_addc(out, '\n');
    }
    for (char *const *word = c->words; *word; word++)
        buf_addf(out, "complete -c berth -n '__fish_seen_subcommand_from %s' -a %s\n", c->verb,
                 *word);
    if (c->takes_jobs)
        buf_addf(out,
                 "complete -c berth -n '__fish_seen_subcommand_from %s' -f -a '(" JOBS ")'\n",
                 c->verb);
}

void
completion_write_fish(const struct completion *all, size_t n, struct buf *out)
{
    buf_addf(out, HEAD, "fish", "fish");
    buf_adds(out, "complete -c berth -l dir -r -d 'the instance in DIR'\n"
                  "complete -c berth -l socket -r -d 'the daemon at this socket'\n"
                  "complete -c berth -l json -d 'data as JSON'\n"
                  "complete -c berth -l help -s h -d 'help'\n");
    for (size_t i = 0; i < n; i++)
        fish_verb(&all[i], out);
}
