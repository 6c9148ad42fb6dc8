// Ended jobs, the newest first, a page at a time. What is asked stands in the address, so that
// it can be sent to somebody.

import {
    el, sync, safe, mib, duration, ago, clock, jobLink, what, chip, gpusText, peak, table, cell,
    load, firstData, follow,
} from "./page.js";

const PAGE = 100;
const STATES = ["COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "LOST", "PREEMPTED", "INFEASIBLE"];
const SPANS = [["", "any time"], ["3600", "last hour"], ["86400", "last day"], ["604800", "last week"], ["2592000", "last 30 days"]];
const known = (v) => v !== null && v !== undefined;

let data = firstData();
const asked = new URLSearchParams(location.search);
const older = []; // the pages before this one, as before_id

function row(job) {
    const most = peak(job);
    return el("tr", {"data-job": job.id},
        el("th.id", {scope: "row"}, jobLink(job)),
        cell("State", null, chip(job.state)),
        cell("Job", "wide", what(job)),
        cell("User", null, job.user),
        cell("GPU", "num", gpusText(job)),
        cell("Peak / requested", "num", known(most) ? mib(most) : "n/a",
            el("span.dim", null, known(job.vram_mib) ? " / " + mib(job.vram_mib) : "")),
        cell("Run time", "num", known(job.run_ms) ? duration(job.run_ms) : "-"),
        cell("Ended", "num", job.ended ? el("time", {datetime: job.ended.rfc3339, title: clock(job.ended.unix)}, ago(job.ended.unix)) : "-"),
        cell("Result", "why", job.state === "COMPLETED" ? verdict(job) : safe(job.explain || job.text || "")));
}

function verdict(job) {
    if (job.verdict === "over") return el("span.dim", null, "requested more than it used");
    if (job.verdict === "under") return el("span", null, "used more than it requested");
    return null;
}

function query() {
    const q = new URLSearchParams();
    q.set("limit", PAGE);
    for (const key of ["search", "user", "state", "before_id"]) if (asked.get(key)) q.set(key, asked.get(key));
    // Whole minutes: all requests for the last hour are then the same.
    const span = Number(asked.get("span"));
    if (span) q.set("since_us", (Math.floor(Date.now() / 60000) * 60 - span) * 1e6);
    return q.toString();
}

const body = el("tbody"), none = el("p.empty", null, "No ended job matches.");
const next = el("button", {type: "button"}, "older"), back = el("button", {type: "button"}, "newer");
let run = null;

function draw() {
    sync(body, data.jobs.map(row));
    body.closest(".scroll").hidden = data.jobs.length === 0;
    none.hidden = data.jobs.length > 0;
    next.hidden = !data.before_id;
    back.hidden = !asked.get("before_id");
}

// A page may be empty and still have others behind it: the daemon looks for a while at a time.
async function refresh() {
    const q = new URLSearchParams(query());
    let jobs = [];
    for (let i = 0; i < 50 && jobs.length < PAGE; i++) {
        const page = await load("/api/v1/history?" + q);
        jobs = jobs.concat(page.jobs);
        data = {jobs, before_id: page.before_id};
        if (!page.before_id) break;
        q.set("before_id", page.before_id);
        q.set("limit", PAGE - jobs.length);
    }
    draw();
}

function go() {
    const q = new URLSearchParams(asked);
    history.replaceState(null, "", q.toString() ? "/history?" + q : "/history");
    run();
}

function field(label, control) {
    return el("label", null, label, control);
}

function filters() {
    const form = el("form.filters", {role: "search", "aria-label": "Filter the jobs"});
    const search = el("input", {type: "search", name: "search", placeholder: "command, name or tag", value: asked.get("search") || ""});
    const user = el("input", {name: "user", placeholder: "any user", value: asked.get("user") || "", size: 10, autocomplete: "off"});
    const choice = (name, options) => {
        const node = el("select", {name}, options.map(([value, text]) =>
            el("option", {value, selected: (asked.get(name) || "") === value}, text)));
        return node;
    };
    const state = choice("state", [["", "any"], ...STATES.map((s) => [s, s.toLowerCase().replace(/_/g, " ")])]);
    const span = choice("span", SPANS);
    form.append(field("Search", search), field("User", user), field("State", state), field("Ended", span));
    let timer = 0;
    const take = () => {
        for (const control of [search, user, state, span])
            if (control.value) asked.set(control.name, control.value);
            else asked.delete(control.name);
        asked.delete("before_id");
        older.length = 0;
        go();
    };
    form.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(take, 250);
    });
    form.addEventListener("submit", (e) => {
        e.preventDefault();
        take();
    });
    return form;
}

next.addEventListener("click", () => {
    older.push(asked.get("before_id") || "");
    asked.set("before_id", data.before_id);
    go();
    scrollTo(0, 0);
});
back.addEventListener("click", () => {
    const to = older.pop();
    if (to) asked.set("before_id", to);
    else asked.delete("before_id");
    go();
});

if (data.error) {
    document.documentElement.classList.remove("js");
    follow(async () => {
        await load("/api/v1/history?limit=1");
        location.reload();
    });
} else {
    document.getElementById("plain").replaceWith(filters(),
        table("Ended jobs, newest first", [["", "id"], ["State"], ["Job"], ["User"], ["GPU", "num"], ["Peak / requested", "num"], ["Run time", "num"], ["Ended", "num"], ["Result"]], body, {id: "history"}),
        none, el("div.pager", null, back, next));
    draw();
    run = follow(async () => {
        // An older page is not refreshed while it is read.
        if (!asked.get("before_id") || data.asked !== location.search) await refresh();
        data.asked = location.search;
    });
    run();
}
