// The first page: problems, GPUs, running jobs, pending jobs with reasons, and recently ended
// jobs.

import {
    el, sync, safe, mib, gib, duration, ago, clock, moment, since, colourOf, jobLink, idText, what,
    chip, gpusText, wants, peak, meter, table, cell, load, firstData, follow,
} from "./page.js";
import {sparkline} from "./plot.js";

const SHOWN = 100; // as many as come without being asked for
const known = (v) => v !== null && v !== undefined;
const isActive = (job) => ["RUNNING", "STARTING", "COMPLETING", "SUSPENDED"].includes(job.state);

let data = firstData();
let series = null; // by UUID
let filter = "";
let limit = SHOWN;

// ------------------------------------------------------------------- summary

function plural(n, one, many) {
    return n + " " + (n === 1 ? one : many || one + "s");
}

function tile(value, of, label, tone) {
    return el("div.tile" + (tone ? "." + tone : ""), null,
        el("b", null, String(value), of ? el("small", null, " / " + of) : null),
        el("span", null, label));
}

// GPUs that do not report their memory have no part in the sum, which says so.
function vramTile(gpus) {
    const counted = gpus.filter((g) => known(g.used_mib) && known(g.total_mib));
    const sum = (key) => counted.reduce((n, g) => n + g[key], 0);
    if (!counted.length) return tile("n/a", null, "VRAM used");
    return tile(gib(sum("used_mib")), gib(sum("total_mib")) + " GiB",
        counted.length === gpus.length ? "VRAM used" : `VRAM used on ${counted.length} of ${gpus.length} GPUs`);
}

function tiles() {
    const counts = data.counts, gpus = data.gpus;
    const busy = gpus.filter((g) => g.jobs.length).length;
    const active = counts.RUNNING + counts.STARTING + counts.COMPLETING + counts.SUSPENDED;
    // With many cards, whose turn it is stands far below.
    const first = data.queue.find((job) => job.state === "PENDING" && job.reason);
    return [
        tile(busy, gpus.length, busy === 1 ? "GPU in use" : "GPUs in use"),
        tile(active, null, "running", active ? "good" : null),
        tile(counts.PENDING, null, first ? `pending (${first.reason})` : "pending", counts.PENDING ? "wait" : null),
        counts.HELD ? tile(counts.HELD, null, "held") : null,
        gpus.length ? vramTile(gpus) : null,
    ];
}

function gpuProblem(g) {
    const by = g.state_by ? " by " + g.state_by : "";
    const why = g.state_text ? ": " + g.state_text : "";
    const name = "GPU " + g.index;
    switch (g.state) {
    case "up":
        return null;
    case "paused":
    case "draining":
        return ["warn", `${name} is ${g.state}${by}${why}. No new jobs start there.`];
    case "unknown":
        return ["bad", `The state of ${name} is unknown${why}. New GPU jobs wait.`];
    default:
        return ["bad", `${name} is ${g.state}${why}.`];
    }
}

const NAMED = 6;

// An array failed because tasks did, which are there as well.
function failures() {
    const jobs = (data.failed || []).filter((job) => !job.array);
    if (!jobs.length) return null;
    const line = el("span", null, `${plural(jobs.length, "job")} failed in the last hour: `);
    jobs.slice(0, NAMED).forEach((job, i) =>
        line.append(i ? ", " : "", jobLink(job), " " + job.state.toLowerCase().replace(/_/g, " ")));
    line.append(jobs.length > NAMED ? ", …" : "");
    return ["warn", line];
}

function problems() {
    const found = [];
    const d = data.daemon;
    if (d.stopping) found.push(["warn", "The daemon is stopping: no new jobs start."]);
    if (data.unknown_since)
        found.push(["bad", "No GPU data since " + clock(data.unknown_since.unix) +
            (data.probe_error ? ": " + data.probe_error : "") + "."]);
    else
        for (const g of data.gpus) found.push(gpuProblem(g));
    if (d.disk_full && !data.health) found.push(["bad", "The disk with Berth's state is full. Running jobs continue; no new jobs are accepted."]);
    for (const check of (data.health && data.health.checks) || [])
        if (check.state !== "ok" && !["gpu", "probe"].includes(check.name))
            found.push([check.state === "bad" ? "bad" : "warn", check.name + ": " + check.text]);
    found.push(failures());
    for (const job of data.queue) {
        const most = peak(job);
        if (isActive(job) && known(job.vram_mib) && most > job.vram_mib * 1.1)
            found.push(["warn", el("span", null, "Job ", jobLink(job), ` uses ${mib(most)}, ` +
                `more than the ${mib(job.vram_mib)} that it requested: other jobs on the GPU may run out of memory.`)]);
    }
    return found.filter(Boolean);
}

function problemList() {
    const found = problems();
    return found.map(([tone, text]) =>
        el("li.problem." + tone, null, typeof text === "string" ? safe(text) : text));
}

// ---------------------------------------------------------------------- GPUs

// What a job may use there, and uses.
function holdOf(hold, jobs, gpu) {
    const whole = !known(hold.vram_mib);
    return {hold, job: jobs.get(hold.job), whole, held: whole ? gpu.total_mib : hold.vram_mib, now: hold.now_mib};
}

function segment(css, mibs, total, title) {
    const node = el("i." + css, {title});
    node.style.width = Math.max(0, 100 * mibs / total).toFixed(2) + "%";
    return node;
}

function vramBar(gpu, holds) {
    const total = gpu.total_mib || 1;
    const external = gpu.external_mib || 0;
    const room = Math.max(0, total - external);
    const sum = holds.reduce((n, h) => n + h.held, 0);
    const scale = sum > room && sum > 0 ? room / sum : 1; // whole cards leave strangers room
    const parts = holds.map((h) => {
        const label = `job ${nameOf(h.hold)} holds ${h.whole ? "the whole GPU" : mib(Math.round(h.held))}` +
            (known(h.now) ? `, uses ${mib(Math.round(h.now))}` : "");
        const node = segment("hold." + colourOf(h.hold.job), h.held * scale, total, label);
        if (known(h.now) && h.held > 0) {
            const used = el("u");
            used.style.width = Math.min(100, 100 * h.now / (h.held * scale)).toFixed(1) + "%";
            node.append(used);
        }
        return node;
    });
    if (external) parts.push(segment("external", external, total, `other processes: ${mib(external)}`));
    return el("div.vram", {role: "img", "aria-label":
        `${mib(gpu.used_mib)} of ${mib(gpu.total_mib)} used, ${mib(gpu.held_mib)} held` +
        (external ? `, ${mib(external)} used by other processes` : "")}, parts);
}

const nameOf = (hold) => known(hold.array_task) ? hold.array_job + "_" + hold.array_task : String(hold.job);

function holderLine(h) {
    const job = h.job;
    const text = !job ? "" : job.name || (job.command === null ? "(private)" : job.command);
    return el("li", null, el("i.dot." + colourOf(h.hold.job)),
        el("a", {href: "/jobs/" + h.hold.job}, nameOf(h.hold)),
        el("span.grow", {title: job && job.command ? safe(job.command) : ""}, safe(text)),
        el("span.dim", null, h.hold.user),
        el("span.num", null, h.whole ? "whole" : gib(h.held) + "G"));
}

function strangerLine(s) {
    return el("li.stranger", null, el("i.dot.external"),
        el("span.grow", null, "pid " + s.pid + (s.user ? " of " + s.user : ""), el("em", null, " not a Berth job")),
        el("span.num", null, known(s.mib) ? mib(s.mib) : "n/a"));
}

function gpuSpark(gpu) {
    const own = series && series[gpu.uuid];
    if (!own || own.points.length < 2) return null;
    const points = own.points;
    const span = (points[points.length - 1][0] - points[0][0]) / 1000;
    return el("figure", null,
        sparkline(points.map((p) => [p[0], p[1]]), gpu.total_mib, points.map((p) => [p[0], p[4]]),
            `VRAM and load in the last ${duration(span)}`),
        el("figcaption", null, el("span", null, el("i.key.area"), "VRAM ", el("i.key.load"), "load"),
            el("span", null, "last " + duration(span).replace(/(\d+[hm])0+[ms]$/, "$1"))));
}

function gpuCard(gpu, jobs) {
    const holds = gpu.holds.map((hold) => holdOf(hold, jobs, gpu));
    const strangers = gpu.strangers.slice(0, 3);
    return el("article.card" + (gpu.state === "up" ? "" : "." + (gpu.state === "paused" ||
        gpu.state === "draining" ? "warn" : "bad")), {"data-gpu": gpu.index},
        el("h3", null, "GPU " + gpu.index, el("span.dim", null, gpu.name || ""),
            gpu.state !== "up" ? el("span.chip." + (gpu.paused ? "warn" : "bad"), null, gpu.state) : null,
            gpu.state === "up" && !gpu.jobs.length && !gpu.external_mib ? el("span.chip.done", null, "free") : null),
        vramBar(gpu, holds),
        el("p.figures", null,
            el("span", null, el("b", null, gib(gpu.used_mib)), ` of ${gib(gpu.total_mib)} GiB used`),
            el("span.dim", null, gpu.state === "up" ? `${gib(gpu.free_mib)} GiB free` : "no new jobs")),
        el("p.figures.dim", null,
            el("span", null, "load ", el("b", null, known(gpu.util) ? gpu.util + " %" : "n/a")),
            el("span", null, known(gpu.temperature_c) ? gpu.temperature_c + " \u00b0C" : "")),
        gpuSpark(gpu),
        el("ul.holders", null, holds.map(holderLine), strangers.map(strangerLine),
            gpu.strangers.length > 3 ? el("li.dim", null, "and " + plural(gpu.strangers.length - 3, "more process", "more processes")) : null,
            !gpu.jobs.length && !gpu.strangers.length ? el("li.dim", null, "idle") : null));
}

// --------------------------------------------------------------------- tables

function vramCell(job) {
    const uses = Object.values(job.use_mib || {}).filter(known);
    const used = uses.length ? Math.max(...uses) : null;
    const most = peak(job);
    if (job.gpus_wanted === 0) return [el("span.dim", null, "-")];
    const asked = known(job.vram_mib) ? gib(job.vram_mib) + " GiB" : known(job.share) ? job.share + " GPU" : "whole";
    if (!known(used)) return [el("span", null, asked)];
    const over = known(job.vram_mib) && most > job.vram_mib;
    return [el("span", null, gib(used) + " / " + asked),
        known(job.vram_mib) ? meter(used, job.vram_mib, `${mib(Math.round(used))} of ${mib(job.vram_mib)}`, over ? "bad" : "") : null];
}

function timeCell(job) {
    if (!job.started) return [el("span.dim", null, "starting")];
    const run = (Date.now() / 1000 - job.started.unix) * 1000;
    if (!job.limit_ms) return [since(job.started.unix)];
    return [el("span", null, since(job.started.unix), el("span.dim", null, " / " + duration(job.limit_ms))),
        meter(run, job.limit_ms, "used of the time limit", run > job.limit_ms * 0.9 ? "warn" : "")];
}

function runningRow(job) {
    return el("tr", {"data-job": job.id},
        el("th.id", {scope: "row"}, el("i.dot." + colourOf(job.id)), jobLink(job)),
        cell("Job", "wide", what(job)),
        cell("User", null, job.user),
        cell("GPU", "num", gpusText(job)),
        cell("VRAM", "num", ...vramCell(job)),
        cell("Load", "num", known(job.util) ? job.util + " %" : el("span.dim", null, "n/a")),
        cell("Running for", "num", ...timeCell(job)));
}

function startCell(job) {
    if (!job.expected_start) return el("span.dim", null, "unknown");
    const ms = (job.expected_start.unix - Date.now() / 1000) * 1000;
    return el("span", {title: new Date(job.expected_start.unix * 1000).toLocaleString()},
        ms < 1000 ? "any moment" : "in " + duration(ms).replace(/(\d+m)\d+s$/, "$1"),
        el("span.dim", null, " " + clock(job.expected_start.unix)));
}

function whyText(job) {
    const text = job.explain || "";
    return job.reason && text.startsWith(job.reason + ": ") ? text.slice(job.reason.length + 2) : text;
}

function waitingRow(job, place) {
    return el("tr", {"data-job": job.id},
        el("th.id", {scope: "row"}, el("span.place", {title: "position in the queue"}, job.state === "HELD" ? "" : place + "."), jobLink(job)),
        cell("Job", "wide", what(job)),
        cell("User", null, job.user),
        cell("Wants", null, wants(job)),
        cell("Reason", "why", job.reason ? el("b.reason", null, job.reason) : null, el("span", null, safe(whyText(job)))),
        cell("Expected", "num", startCell(job)));
}

function endedRow(job) {
    const most = peak(job);
    return el("tr", {"data-job": job.id},
        el("th.id", {scope: "row"}, jobLink(job)),
        cell("State", null, chip(job.state)),
        cell("Job", "wide", what(job)),
        cell("User", null, job.user),
        cell("Result", "why", job.state === "COMPLETED" ? null : safe(job.explain || ""),
            known(most) ? el("span.dim", null, (job.state === "COMPLETED" ? "peak " : ", peak ") + mib(most)) : null),
        cell("Run time", "num", known(job.run_ms) ? duration(job.run_ms) : "-"),
        cell("Ended", "num", job.ended ? el("time", {datetime: job.ended.rfc3339, title: clock(job.ended.unix)}, ago(job.ended.unix)) : "-"));
}

function matches(job) {
    if (!filter) return true;
    return [idText(job), job.name, job.command, job.user, job.reason, ...(job.tags || [])]
        .some((text) => text && String(text).toLowerCase().includes(filter));
}

// ----------------------------------------------------------------------- page

const parts = {};

function build() {
    const search = el("input", {type: "search", id: "filter", placeholder: "filter by job, user, reason",
        "aria-label": "Filter the queue", autocomplete: "off"});
    search.addEventListener("input", () => {
        filter = search.value.trim().toLowerCase();
        draw();
    });
    parts.problems = el("ul.problems", {"aria-label": "Problems"});
    parts.tiles = el("div.tiles", {"aria-label": "Totals", role: "group"});
    parts.cards = el("div.cards");
    for (const name of ["running", "waiting", "ended"]) {
        parts[name] = el("tbody");
        parts[name + "Title"] = el("h2");
        parts[name + "None"] = el("p.empty");
    }
    parts.more = el("button.more", {type: "button"});
    parts.more.addEventListener("click", () => {
        limit = limit > SHOWN ? SHOWN : 10000;
        run();
    });
    const left = [["", "id"], ["Job"], ["User"]];
    const running = table("Running jobs", [...left, ["GPU", "num"], ["VRAM", "num"], ["Load", "num"], ["Running for", "num"]], parts.running, {id: "running"});
    const waiting = table("Pending jobs, next one first", [...left, ["Request"], ["Reason"], ["Expected start", "num"]], parts.waiting, {id: "waiting"});
    const ended = table("Recently ended jobs", [["", "id"], ["State"], ["Job"], ["User"], ["Result"], ["Run time", "num"], ["Ended", "num"]], parts.ended, {id: "ended"});
    document.getElementById("plain").replaceWith(
        el("section.summary", {"aria-label": "Summary"}, parts.tiles, parts.problems),
        el("section", {"aria-label": "GPUs"}, parts.cards),
        el("section", {"aria-label": "Running"}, el("div.bar", null, parts.runningTitle, search), running, parts.runningNone),
        el("section", {"aria-label": "Pending"}, parts.waitingTitle, waiting, parts.waitingNone, parts.more),
        el("section", {"aria-label": "Ended"}, el("div.bar", null, parts.endedTitle, el("a", {href: "/history"}, "full history")), ended, parts.endedNone));
}

function title(node, text, n, shown) {
    sync(node, [el("span", null, text), el("small", null, shown !== n ? `${shown} of ${n}` : String(n))]);
}

function fill(name, rows, none) {
    sync(parts[name], rows);
    parts[name].closest(".scroll").hidden = rows.length === 0;
    parts[name + "None"].hidden = rows.length > 0;
    parts[name + "None"].textContent = none;
}

function drawQueue() {
    const counts = data.counts;
    const active = data.queue.filter(isActive), waiting = data.queue.filter((job) => !isActive(job));
    const place = new Map(waiting.map((job, i) => [job.id, i + 1]));
    const shownActive = active.filter(matches), shownWaiting = waiting.filter(matches);
    // An array is one row, and as many jobs as it has tasks that wait.
    const nWaiting = Math.max(waiting.length, counts.PENDING + counts.HELD);
    const all = !filter && data.queue.length < limit;
    title(parts.runningTitle, "Running", active.length, shownActive.length);
    title(parts.waitingTitle, "Pending", nWaiting, all ? nWaiting : shownWaiting.length);
    fill("running", shownActive.map(runningRow), filter ? "No running job matches." : "No running jobs.");
    fill("waiting", shownWaiting.map((job) => waitingRow(job, place.get(job.id))),
        filter ? "No pending job matches." : "No pending jobs.");
    parts.more.hidden = data.queue.length < SHOWN;
    parts.more.textContent = limit > SHOWN ? "show fewer" : "show all " + nWaiting;
}

function draw() {
    const jobs = new Map(data.queue.map((job) => [job.id, job]));
    const active = data.counts.RUNNING + data.counts.STARTING;
    document.title = `${active} running, ${data.counts.PENDING} pending \u00b7 Berth`;
    sync(parts.tiles, tiles());
    sync(parts.problems, problemList());
    parts.problems.hidden = !parts.problems.children.length;
    sync(parts.cards, data.gpus.map((gpu) => gpuCard(gpu, jobs)));
    drawQueue();
    title(parts.endedTitle, "Recently ended", data.recent.length, data.recent.length);
    fill("ended", data.recent.map(endedRow), "No job has ended yet.");
}

async function loadSeries() {
    try {
        const answer = await load("/api/v1/series");
        series = Object.fromEntries(answer.gpus.map((g) => [g.uuid, g]));
    } catch (e) {
        series = null; // a daemon that keeps none, or one that is away
    }
}

async function refresh() {
    const more = limit > SHOWN ? "?limit=" + limit : "";
    const [fresh] = await Promise.all([load("/api/v1/overview" + more), loadSeries()]);
    data = fresh;
    draw();
}

let run;
if (data.error) {
    document.documentElement.classList.remove("js"); // what is wrong stands in the plain page
    run = follow(async () => {
        await load("/api/v1/overview");
        location.reload();
    });
} else {
    build();
    draw();
    run = follow(refresh);
    loadSeries().then(draw);
}
