// What was asked against what was used: totals, users, commands, what went wrong, how busy the
// GPUs were, how long jobs waited, and what would do better.

import {el, svg, sync, safe, mib, duration, clock, table, cell, load, firstData, follow} from "./page.js";

const SPANS = [["86400", "last day"], ["604800", "last week"], ["2592000", "last 30 days"], ["", "all time"]];
const known = (v) => v !== null && v !== undefined;
const asked = new URLSearchParams(location.search);

let data = firstData();

function hours(ms) {
    const h = ms / 3600000;
    if (h < 1) return duration(ms);
    return (h < 100 ? h.toFixed(1) : Math.round(h).toLocaleString()) + " h";
}

const percent = (v) => known(v) ? Math.round(v) + " %" : "n/a";

function tile(value, label, tone) {
    return el("div.tile" + (tone ? "." + tone : ""), null, el("b", null, value), el("span", null, label));
}

function failed(x) {
    return x.jobs - (x.states.COMPLETED || 0) - (x.states.CANCELLED || 0);
}

function tiles() {
    const t = data.total, n = failed(t);
    const ofCards = data.gpus.length ? 100 * data.gpus.reduce((sum, g) => sum + (g.busy || 0), 0) / data.gpus.length : null;
    return [
        tile(t.jobs.toLocaleString(), "jobs ended"),
        tile(n.toLocaleString(), "failed", n ? "bad" : null),
        tile(hours(t.gpu_ms), "GPU time"),
        tile(percent(ofCards), "of GPU time allocated"),
        tile(percent(t.util), "mean load of allocated GPUs"),
        tile(known(t.wait_mean_ms) ? duration(t.wait_mean_ms) : "n/a", "mean wait"),
    ];
}

// How a group's jobs stood to what they asked for.
function verdicts(x) {
    const parts = [["fitting", x.within, "good"], ["too small", x.under, "bad"], ["too large", x.over, "warn"]].filter((p) => p[1]);
    if (!parts.length) return el("span.dim", null, "-");
    return el("span", null, parts.map(([text, n, tone], i) => [i ? " " : "", el("span.chip." + tone, null, `${n} ${text}`)]));
}

function userRow(u) {
    return el("tr", null, el("th.id", {scope: "row"}, u.user),
        cell("Jobs", "num", u.jobs.toLocaleString()),
        cell("Failed", "num", String(failed(u))),
        cell("GPU time", "num", hours(u.gpu_ms)),
        cell("Load", "num", percent(u.util)),
        cell("Mean wait", "num", known(u.wait_mean_ms) ? duration(u.wait_mean_ms) : "-"),
        cell("VRAM requests", null, verdicts(u)));
}

function commandRow(c) {
    return el("tr", null, cell("Command", "wide", el("a.what", {href: "/jobs/" + c.newest, title: c.command === null ? "" : safe(c.command)},
        el("code", null, c.command === null ? "(private)" : safe(c.command)))),
    cell("User", null, c.user),
    cell("Jobs", "num", c.jobs.toLocaleString()),
    cell("Failed", "num", String(failed(c))),
    cell("GPU time", "num", hours(c.gpu_ms)),
    cell("Peak / requested", "num", known(c.peak_mib) ? mib(c.peak_mib) : "n/a", el("span.dim", null, known(c.asked_mib) ? " / " + mib(c.asked_mib) : "")),
    cell("VRAM requests", null, verdicts(c)));
}

function causeRow(c) {
    return el("tr", null, cell("Cause", "wide", safe(c.text)), cell("Jobs", "num", String(c.jobs)),
        cell("GPU time lost", "num", hours(c.gpu_ms)),
        cell("Newest", "num", el("a", {href: "/jobs/" + c.newest}, "job " + (c.newest_name || c.newest))));
}

// A strip for each card: the darker, the more of that time it was held.
function occupancy() {
    const bins = data.bins;
    if (!bins || !bins.n || !data.gpus.length) return null;
    const w = Math.max(280, root.clientWidth), row = 26, left = 60;
    const node = svg("svg", {viewBox: `0 0 ${w} ${data.gpus.length * row + 20}`, class: "plot", role: "img",
        "aria-label": "Share of the time in which each GPU was allocated"});
    data.gpus.forEach((g, i) => {
        node.append(svg("text", {x: 6, y: i * row + 18}, "GPU " + g.index));
        const wide = (w - left - 8) / bins.n;
        g.bins.forEach((b, k) => {
            const cellOf = svg("rect", {x: left + k * wide, y: i * row + 4, width: Math.max(0.5, wide - 0.6), height: row - 6, rx: 2, class: "held"});
            cellOf.style.fillOpacity = (0.08 + 0.92 * b[0] / 1000).toFixed(3);
            node.append(cellOf);
        });
    });
    const y = data.gpus.length * row + 15;
    const marks = w > 560 ? 4 : 2;
    for (let k = 0; k <= marks; k++)
        node.append(svg("text", {x: left + (w - left - 8) * k / marks, y, "text-anchor": k === 0 ? "start" : k === marks ? "end" : "middle"},
            clock((bins.from_us + bins.width_us * bins.n * k / marks) / 1e6)));
    return el("section", {"aria-label": "Occupancy"}, el("h2", null, "GPU allocation over time"), node);
}

function advice() {
    if (!data.advice.length) return null;
    return el("section", {"aria-label": "Advice"}, el("h2", null, "Advice"),
        el("ul.problems", null, data.advice.slice(0, 6).map((a) =>
            el("li.problem." + (a.kind === "out_of_memory" || a.kind === "ask_more" ? "warn" : "note"), null,
                el("a", {href: "/jobs/" + a.newest}, el("code", null, a.command === null ? "(private)" : safe(a.command))),
                " of " + a.user + ": ", safe(a.text)))));
}

function part(name, caption, heads, rows, none) {
    return el("section", {"aria-label": caption}, el("h2", null, caption),
        rows.length ? table(caption, heads, el("tbody", null, rows), {id: name}) : el("p.empty", null, none));
}

const root = el("div");

function draw() {
    sync(root, [
        el("section.summary", null, el("div.tiles", null, tiles())),
        advice(),
        occupancy(),
        part("users", "Users", [["User", "id"], ["Jobs", "num"], ["Failed", "num"], ["GPU time", "num"], ["Load", "num"], ["Mean wait", "num"], ["VRAM requests"]],
            data.users.map(userRow), "No job ended in this period."),
        part("causes", "Failures", [["Cause"], ["Jobs", "num"], ["GPU time lost", "num"], ["Newest", "num"]],
            data.causes.map(causeRow), "No job failed in this period."),
        part("commands", "Commands", [["Command"], ["User"], ["Jobs", "num"], ["Failed", "num"], ["GPU time", "num"], ["Peak / requested", "num"], ["VRAM requests"]],
            data.commands.slice(0, 50).map(commandRow), "No job ended in this period."),
    ]);
}

function query() {
    const span = asked.has("span") ? Number(asked.get("span")) : 0;
    // Whole minutes: all requests for the last day are then the same.
    return span ? "?since_us=" + (Math.floor(Date.now() / 60000) * 60 - span) * 1e6 : "";
}

async function refresh() {
    data = await load("/api/v1/report" + query());
    draw();
}

if (data.error) {
    document.documentElement.classList.remove("js");
} else {
    const choice = el("select", {name: "span"}, SPANS.map(([value, text]) =>
        el("option", {value, selected: (asked.get("span") || "") === value}, text)));
    choice.addEventListener("input", () => {
        if (choice.value) asked.set("span", choice.value);
        else asked.delete("span");
        history.replaceState(null, "", asked.toString() ? "/report?" + asked : "/report");
        refresh();
    });
    document.getElementById("plain").replaceWith(
        el("form.filters", null, el("label", null, "Jobs that ended in", choice)), root);
    draw();
    if (asked.get("span")) refresh();
    // Figures of the past are looked at now and then.
    let last = Date.now();
    follow(async () => {
        if (Date.now() - last < 60000) return;
        last = Date.now();
        await refresh();
    });
}
