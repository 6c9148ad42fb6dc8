// A job's page: what it is, how it stands and why, what it used over time, what it printed.

import {
    el, sync, safe, mib, duration, moment, since, idText, chip, colourOf, wants, peak, table, cell,
    load, firstData, follow,
} from "./page.js";
import {memoryPlot} from "./plot.js";

const known = (v) => v !== null && v !== undefined;
const FINAL = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "PREEMPTED", "INFEASIBLE", "LOST"];
const isOver = (job) => FINAL.includes(job.state);
const id = Number(location.pathname.split("/").pop());

let data = firstData();
let curves = null;
let log = null; // {text} or {error}

// --------------------------------------------------------------------- facts

function fact(name, value, wide) {
    if (!known(value) || value === "") return null;
    return el("div" + (wide ? ".wide" : ""), null, el("dt", null, name),
        el("dd", null, value));
}

function gpus(job) {
    if (job.gpus_wanted === 0) return "none requested";
    if (!job.gpus.length) return null;
    return job.gpus.map((g) => g.index).join(", ");
}

function exit(job) {
    if (known(job.signal)) return "signal " + job.signal;
    if (known(job.exit_code)) return "exit " + job.exit_code;
    return null;
}

function memory(job) {
    const most = peak(job);
    if (!known(most)) return null;
    const of = job.vram_mib || job.declared_mib; // a retry may have asked for more than at first
    return mib(most) + (of ? ` of ${mib(of)} requested (${Math.round(100 * most / of)}\u00a0%)` : "") +
        (["over", "under"].includes(job.verdict) ? `, ${job.verdict}-declared` : "");
}

function after(job) {
    if (!job.after || !job.after.length) return null;
    return el("span", null, job.after.map((a, i) => [i ? ", " : "",
        el("a", {href: "/jobs/" + a.job}, String(a.job) + (known(a.task) ? "_" + a.task : "")), " (" + a.type + ")"]));
}

function arrayText(job) {
    const a = job.array;
    if (!a) return null;
    const ended = Object.entries(a.ended || {}).map(([state, n]) => n + " " + state.toLowerCase().replace(/_/g, " "));
    return [`${a.total} tasks (${a.tasks})`, a.waiting + " pending", a.active + " running", ...ended].join(", ");
}

function facts(job, why) {
    const started = job.started, ended = job.ended;
    return [
        fact("User", job.user),
        fact("Request", wants(job)),
        fact("GPU", gpus(job)),
        fact("Peak VRAM", memory(job)),
        fact("VRAM now", known(job.now_mib) ? mib(job.now_mib) : null),
        fact("Mean GPU load", known(job.util) ? job.util + " %" : null),
        fact("Submitted", moment(job.submitted)),
        fact("Started", started ? moment(started) : null),
        fact("Ended", ended ? moment(ended) : null),
        fact(ended ? "Run time" : "Running for", ended ? (known(job.run_ms) ? duration(job.run_ms) : null) : started ? since(started.unix) : null),
        fact("Waited", started ? duration((started.unix - job.submitted.unix) * 1000) : null),
        fact("Time limit", known(job.limit_ms) ? duration(job.limit_ms) : isOver(job) ? null : "none"),
        fact("Starts by", !isOver(job) && job.latest_start ? moment(job.latest_start) : null),
        fact("Expected start", !isOver(job) && job.expected_start ? moment(job.expected_start) : null),
        fact("Expected end", why && why.expected_end ? moment(why.expected_end) : null),
        fact("Priority", job.priority || null),
        fact("Position", why && known(why.position) ? `${why.position} of ${why.waiting}` : null),
        fact("Result", isOver(job) ? exit(job) : null),
        fact("Attempt", job.attempt > 1 ? job.attempt : null),
        fact("After", after(job)),
        fact("Array", arrayText(job)),
        fact("Task of", known(job.array_job) ? el("a", {href: "/jobs/" + job.array_job}, "array " + job.array_job) : null),
        fact("CPUs", job.cpus), fact("Memory", known(job.mem_mib) ? mib(job.mem_mib) : null),
        fact("Tags", (job.tags || []).map(safe).join(", ")),
        fact("Jobs file", job.file ? safe(job.file) + ":" + job.line : null, true),
        fact("Folder", job.cwd ? el("code", null, safe(job.cwd)) : null, true),
        fact("Log", job.log ? el("code", null, safe(job.log)) : null, true),
    ];
}

// -------------------------------------------------------------------- parts

// "job 3", "jobs 2 and 1": each number leads to its job.
function linked(text) {
    return text.split(/(\bjobs? \d+(?:(?:, | and )\d+)*)/).map((part, i) => i % 2 === 0 ? part
        : part.split(/(\d+)/).map((piece, k) => k % 2 ? el("a", {href: "/jobs/" + piece}, piece) : piece));
}

function sentence(job, why) {
    const text = (why && why.text) || job.explain;
    if (!text) return null;
    const tone = ["FAILED", "OUT_OF_MEMORY", "LOST", "INFEASIBLE"].includes(job.state) ? "bad"
        : job.state === "TIMEOUT" || job.state === "PREEMPTED" ? "warn" : "note";
    return el("p.problem." + tone, {id: "why"}, el("b", null, job.state === "PENDING" ? "Why it is pending: " : isOver(job) ? "Result: " : "State: "),
        linked(safe(text)),
        why && why.help ? el("span", null, el("br"), "Would help: ", safe(why.help)) : null);
}

function attemptRow(a) {
    const most = Object.values(a.peak_mib || {}).filter(known);
    return el("tr", null, el("th.id", {scope: "row"}, String(a.number)),
        cell("Result", "why", a.outcome ? safe(a.text || a.outcome) : "running"),
        cell("GPU", "num", a.gpus.length ? a.gpus.join(",") : "-"),
        cell("Requested", "num", known(a.vram_mib) ? mib(a.vram_mib) : "-"),
        cell("Peak", "num", most.length ? mib(Math.max(...most)) : "n/a"),
        cell("Started", "num", a.started ? moment(a.started) : "-"),
        cell("Run time", "num", known(a.run_ms) ? duration(a.run_ms) : a.started ? since(a.started.unix) : "-"));
}

function attempts(job) {
    if (!job.attempts || job.attempts.length < 2) return null;
    return el("section", {"aria-label": "Attempts"}, el("h2", null, "Attempts"),
        table("Attempts", [["", "id"], ["Result"], ["GPU", "num"], ["Requested", "num"], ["Peak", "num"], ["Started", "num"], ["Run time", "num"]],
            el("tbody", null, job.attempts.map(attemptRow))));
}

function plot(job) {
    if (!curves || !curves.points || curves.points.length < 2) return null;
    const cards = [...new Set(curves.points.flatMap((p) => Object.keys(p[1] || {})))].sort((a, b) => a - b);
    const lines = cards.map((g) => ({label: "GPU " + g, css: colourOf(Number(g)),
        points: curves.points.map((p) => [p[0], (p[1] || {})[g]])}));
    const drawn = memoryPlot(lines, job.vram_mib, Math.max(280, root.clientWidth));
    if (!drawn) return null;
    return el("section", {"aria-label": "VRAM over time"}, el("h2", null, "VRAM over time"), drawn,
        el("p.legend", null, lines.map((l) => el("span", null, el("i.dot." + l.css), " " + l.label))));
}

function logPart() {
    const box = document.querySelector("pre.log");
    if (!log || log.error)
        return el("section", {id: "log", "aria-label": "Log"}, el("h2", null, "Log"),
            el("p.empty", null, log ? safe(log.error) : "Loading ..."));
    if (box && box.dataset.text === "yes" && box.textContent === log.text) return box.closest("section").cloneNode(true);
    return el("section", {id: "log", "aria-label": "Log"}, el("h2", null, "Log", el("small", null, "last lines")),
        log.text ? el("pre.log", {tabindex: "0", "data-text": "yes"}, log.text)
            : el("p.empty", null, isOver(data.job) ? "The job printed nothing." : "The job has printed nothing yet."));
}

// --------------------------------------------------------------------- page

const root = el("div");

function draw() {
    const job = data.job, why = data.explanation;
    const name = job.name ? safe(job.name) : "";
    document.title = `Job ${idText(job)} ${job.state.toLowerCase()} \u00b7 Berth`;
    const box = document.querySelector("pre.log");
    const atEnd = !box || box.scrollHeight - box.scrollTop - box.clientHeight < 30;
    sync(root, [
        el("div.head", null, el("h1", null, "Job " + idText(job) + (name ? " " : ""), name ? el("span.dim", null, name) : null),
            chip(job.state)),
        sentence(job, why),
        el("section", {"aria-label": "Command"}, el("pre.shell", {tabindex: "0"}, job.command === null ? "(private)" : safe(job.command))),
        el("section", {"aria-label": "Facts"}, el("dl.facts", null, facts(job, why))),
        attempts(job),
        plot(job),
        logPart(),
    ]);
    const now = document.querySelector("pre.log");
    if (now && atEnd) now.scrollTop = now.scrollHeight;
}

async function loadLog() {
    const answer = await fetch(`/api/v1/jobs/${id}/log`);
    const text = await answer.text();
    if (answer.ok) {
        log = {text};
        return;
    }
    try {
        log = {error: JSON.parse(text).error.message};
    } catch (e) {
        log = {error: "Cannot read the log (HTTP status " + answer.status + ")."};
    }
}

async function loadCurves() {
    try {
        curves = await load(`/api/v1/jobs/${id}/series`);
    } catch (e) {
        curves = null; // none was kept
    }
}

async function more() {
    const wants = [];
    if (data.job.started || isOver(data.job)) wants.push(loadLog());
    else log = {error: "The job has not started."};
    if (data.job.gpus_wanted !== 0) wants.push(loadCurves());
    await Promise.allSettled(wants);
    draw();
}

let wasOver = false;

async function refresh() {
    if (wasOver && isOver(data.job) && log) return; // nothing changes any more, unless it is requeued
    data = await load("/api/v1/jobs/" + id);
    draw();
    wasOver = isOver(data.job);
    await more();
}

if (data.error || !data.job) {
    document.documentElement.classList.remove("js");
    follow(async () => {
        if ((await load("/api/v1/jobs/" + id)).job) location.reload();
    });
} else {
    document.getElementById("plain").replaceWith(root);
    document.querySelector("h1.title").remove();
    draw();
    more();
    const run = follow(refresh);
    addEventListener("resize", draw);
    // What it prints makes no event.
    setInterval(() => {
        if (!isOver(data.job)) run();
    }, 3000);
}
