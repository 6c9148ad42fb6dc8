// What all pages share: making elements (text is only ever set as text), showing numbers and
// times as berth does in a terminal, fetching, and the connection that says what is new.

// ------------------------------------------------------------------ elements

// el("a.name", {href: "/"}, "text", node, ...); null children are left out.
export function el(what, attributes, ...children) {
    const [tag, ...classes] = what.split(".");
    const node = document.createElement(tag);
    if (classes.length) node.className = classes.join(" ");
    for (const [key, value] of Object.entries(attributes || {}))
        if (value !== null && value !== undefined && value !== false)
            node.setAttribute(key, value === true ? "" : value);
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined && child !== false && child !== "")
            node.append(child);
    return node;
}

export function svg(tag, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes || {}))
        if (value !== null && value !== undefined) node.setAttribute(key, value);
    node.append(...children);
    return node;
}

// Makes parent's children these, and leaves alone each that is as it was: what a person has
// focused or marked stays so.
export function sync(parent, nodes) {
    nodes = nodes.filter(Boolean);
    for (let i = 0; i < nodes.length; i++) {
        const old = parent.children[i];
        if (!old) parent.append(nodes[i]);
        else if (!old.isEqualNode(nodes[i])) old.replaceWith(nodes[i]);
    }
    while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}

// Other people's words: control bytes and what turns the direction of writing are shown as
// what they are.
export function safe(text) {
    return String(text).replace(
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069]/g,
        (c) => (c < " " || c === "\u007f"
            ? "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")
            : "[U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "]"));
}

// ------------------------------------------------------------------- numbers

const known = (v) => v !== null && v !== undefined;

export function mib(v) {
    if (!known(v)) return "n/a";
    if (v < 1024) return v + " MiB";
    return (v / 1024).toFixed(1) + " GiB";
}

export function gib(v) {
    return known(v) ? (v / 1024).toFixed(1) : "n/a";
}

export function duration(ms) {
    if (!known(ms)) return "n/a";
    const s = Math.max(0, Math.floor(ms / 1000));
    const two = (n) => String(n).padStart(2, "0");
    if (s < 60) return s + "s";
    if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
    if (s < 86400) return Math.floor(s / 3600) + "h" + two(Math.floor((s % 3600) / 60)) + "m";
    return Math.floor(s / 86400) + "d" + two(Math.floor((s % 86400) / 3600)) + "h";
}

// How long ago, as few letters as say it.
export function ago(unix, now = Date.now() / 1000) {
    const s = now - unix;
    if (s < 5) return "just now";
    return duration(s * 1000).replace(/(\d+[dhm])0?\d+[hms]$/, "$1") + " ago";
}

// "14:31" of today, else with its day.
export function clock(unix) {
    const at = new Date(unix * 1000);
    const time = at.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit", hourCycle: "h23"});
    if (at.toDateString() === new Date().toDateString()) return time;
    return at.toLocaleDateString([], {month: "short", day: "numeric"}) + " " + time;
}

export function moment(time) {
    return el("time", {datetime: time.rfc3339, title: new Date(time.unix * 1000).toLocaleString()},
        clock(time.unix));
}

// A time that runs: text is renewed every second by tick().
export function since(unix) {
    return el("time.since", {"data-since": unix}, duration((Date.now() / 1000 - unix) * 1000));
}

function tick() {
    const now = Date.now() / 1000;
    for (const node of document.querySelectorAll("time.since")) {
        const text = duration((now - node.dataset.since) * 1000);
        if (node.textContent !== text) node.textContent = text;
    }
}

// ---------------------------------------------------------------------- jobs

const COLOURS = 10;
export const colourOf = (id) => "c" + (id * 7 % COLOURS);

// What people call it: a task is "5_3", an array that still has tasks "5_[0-99%8]".
export function idText(job) {
    if (known(job.array_task)) return job.array_job + "_" + job.array_task;
    if (job.array && job.array.pending) {
        const most = job.array.max ? "%" + job.array.max : "";
        return job.id + "_[" + job.array.pending + most + "]";
    }
    return String(job.id);
}

export function jobLink(job) {
    return el("a", {href: "/jobs/" + job.id}, idText(job));
}

export function what(job) {
    const command = job.command === null
        ? el("span.dim", null, "(private)")
        : el("code.command", {title: safe(job.command)}, safe(job.command));
    if (!job.name) return el("span.what", null, command);
    return el("span.what", null, el("b.name", null, safe(job.name)), command);
}

const TONES = {
    RUNNING: "good", STARTING: "good", COMPLETING: "good", COMPLETED: "done", PENDING: "wait",
    HELD: "held", SUSPENDED: "held", CANCELLED: "held", PREEMPTED: "warn", TIMEOUT: "warn",
    FAILED: "bad", OUT_OF_MEMORY: "bad", INFEASIBLE: "bad", LOST: "bad",
};

export function chip(state) {
    return el("span.chip." + (TONES[state] || "held"), null, state.toLowerCase().replace(/_/g, " "));
}

export function gpusText(job) {
    if (job.gpus.length) return job.gpus.map((g) => g.index).join(",");
    return job.gpus_wanted === 0 ? "cpu" : "-";
}

// What a job asks for, in words.
export function wants(job) {
    const parts = [];
    if (job.gpus_wanted === 0) parts.push("no GPU");
    else if (known(job.share)) parts.push(job.share + " of a GPU");
    else if (job.gpus_wanted > 1) parts.push(job.gpus_wanted + " GPUs");
    else parts.push(known(job.vram_mib) ? "1 GPU" : "a whole GPU");
    if (known(job.vram_mib)) parts.push(mib(job.vram_mib) + (job.gpus_wanted > 1 ? " each" : ""));
    else if (job.gpus_wanted > 1 && !known(job.share)) parts.push("whole");
    if (job.exclusive && known(job.vram_mib)) parts.push("alone");
    if (job.cpus && job.gpus_wanted === 0 && job.cpus > 1) parts.push(job.cpus + " CPUs");
    return parts.join(", ");
}

// The most that it had on any card; null: not known.
export function peak(job) {
    const all = Object.values(job.peak_mib || {}).filter(known);
    return all.length ? Math.max(...all) : null;
}

// A line with a filled part: how much of what.
export function meter(value, of, label, tone) {
    const percent = of > 0 ? Math.min(100, 100 * value / of) : 0;
    const fill = el("i" + (tone ? "." + tone : ""));
    fill.style.width = percent.toFixed(1) + "%";
    return el("span.meter", {role: "img", "aria-label": label}, fill);
}

export function table(caption, heads, body, attributes) {
    return el("div.scroll", null, el("table", attributes,
        el("caption.unseen", null, caption),
        el("thead", null, el("tr", null, heads.map(([text, css]) =>
            el("th" + (css ? "." + css : ""), {scope: "col"}, text)))),
        body));
}

// A cell that on a small screen says what it is.
export function cell(label, css, ...children) {
    return el("td" + (css ? "." + css : ""), {"data-label": label}, ...children);
}

// ------------------------------------------------------------------- fetching

export async function load(path) {
    const answer = await fetch(path, {headers: {Accept: "application/json"}});
    if (answer.status === 401) location.reload();
    const body = await answer.json();
    if (body && body.error)
        throw Object.assign(new Error(body.error.message), {kind: body.error.kind});
    return body;
}

// What the page came with.
export function firstData() {
    return JSON.parse(document.getElementById("data").textContent);
}

// ----------------------------------------------------------------------- live

const live = document.getElementById("live");

function showLive(tone, text) {
    live.className = "live " + tone;
    live.textContent = text;
}

// The banner below the header: what is on the page is old, and why.
export function banner(text) {
    let node = document.getElementById("banner");
    if (!text) {
        if (node) node.remove();
        return;
    }
    if (!node) {
        node = el("p.problem.bad", {id: "banner", role: "alert"});
        document.querySelector("main").prepend(node);
    }
    if (node.textContent !== text) node.textContent = text;
}

// Calls refresh when something may be new: at most one call at a time, none while the page
// is hidden, and one when it is seen again.
export function follow(refresh) {
    const first = firstData();
    let running = false, again = false, stale = false;
    const said = first?.error?.message; // on the page itself
    let gone = first?.error?.kind === "unreachable";
    if (gone) showLive("off", "no daemon");

    async function run() {
        if (document.hidden) {
            stale = true;
            return;
        }
        if (running) {
            again = true;
            return;
        }
        running = true;
        try {
            await refresh();
            if (gone) showLive("on", "live");
            gone = false;
            banner(null);
        } catch (e) {
            gone = e.kind === "unreachable";
            if (gone) showLive("off", "no daemon");
            banner(e.message === said ? null : e instanceof TypeError ? "berth-web does not answer. The page shows the last known state."
                : e.message + ". The page shows the last known state.");
        }
        running = false;
        if (again) {
            again = false;
            run();
        }
    }

    const source = new EventSource("/api/v1/events?only=rev");
    source.addEventListener("open", () => {
        if (!gone) showLive("on", "live");
    });
    source.addEventListener("rev", () => {
        if (!gone) showLive("on", "live");
        run();
    });
    source.addEventListener("lost", run);
    source.addEventListener("state", (e) => {
        const state = JSON.parse(e.data);
        if (!state.connected) {
            showLive("off", "no daemon");
            banner(state.why + ". The page shows the last known state.");
        } else {
            run();
        }
    });
    source.addEventListener("error", () => {
        showLive("off", "reconnecting");
        // A browser that was logged out gets no stream; a plain request shows it.
        if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
    });
    document.addEventListener("visibilitychange", () => {
        if (!document.hidden && stale) {
            stale = false;
            run();
        }
    });
    return run;
}

// ---------------------------------------------------------------------- theme

function startTheme() {
    const root = document.documentElement, button = document.getElementById("theme");
    if (!button) return;
    const isDark = () => root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
    const label = () => {
        button.textContent = isDark() ? "\u2600" : "\u263e";
        button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
        button.title = button.getAttribute("aria-label");
    };
    button.hidden = false;
    label();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
    button.addEventListener("click", () => {
        root.dataset.theme = isDark() ? "light" : "dark";
        try {
            localStorage.setItem("berth-theme", root.dataset.theme);
        } catch (e) {
            // It holds until the page is left, then.
        }
        label();
    });
}

startTheme();
setInterval(tick, 1000);
