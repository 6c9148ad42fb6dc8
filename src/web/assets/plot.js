// Curves as SVG: small ones on the cards, and a job's memory over time.

import {svg, mib, clock, duration} from "./page.js";

const known = (v) => v !== null && v !== undefined;

// Without samples for that long, nothing is known: at least a minute, and three times what lies
// between most samples, which depends on the span and on what the machine does.
function longestStep(points) {
    const steps = points.slice(1).map((p, i) => p[0] - points[i][0]).sort((a, b) => a - b);
    return Math.max(60e6, 3 * (steps[steps.length >> 1] || 0));
}

// Points as path; a gap where a value is not known. close: down to the bottom, to be filled.
export function path(points, x, y, bottom) {
    const limit = longestStep(points);
    let text = "", open = null, last = null, before = null;
    for (const p of points) {
        if (open !== null && (!known(p[1]) || p[0] - before > limit)) {
            if (bottom !== undefined) text += `L${last} ${bottom}L${open} ${bottom}Z`;
            open = null;
        }
        if (!known(p[1])) continue;
        before = p[0];
        const at = x(p[0]).toFixed(1);
        text += (open === null ? "M" : "L") + at + " " + y(p[1]).toFixed(1);
        if (open === null) open = at;
        last = at;
    }
    if (bottom !== undefined && open !== null) text += `L${last} ${bottom}L${open} ${bottom}Z`;
    return text;
}

// used: [[at_us, mib]], load: [[at_us, percent]]. Where the total is not known, the most that was used
// is the height.
export function sparkline(used, total, load, label) {
    const w = 240, h = 36;
    const all = used.length ? used : load;
    if (all.length < 2) return null;
    const from = all[0][0], to = all[all.length - 1][0];
    const x = (t) => to > from ? (t - from) / (to - from) * w : 0;
    const most = total || Math.max(1, ...used.map((p) => p[1]).filter(known));
    const node = svg("svg", {viewBox: `0 0 ${w} ${h}`, class: "spark", preserveAspectRatio: "none",
        role: "img", "aria-label": label});
    node.append(svg("path", {class: "area", d: path(used, x, (v) => h - v / most * (h - 2), h)}));
    node.append(svg("path", {class: "load", d: path(load, x, (v) => h - 1 - v / 100 * (h - 3))}));
    return node;
}

function niceStep(max) {
    const raw = max / 4, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= raw);
}

// curves: [{label, css, points: [[at_us, mib]]}]; asked: a line for that, or null; w: in pixels.
export function memoryPlot(curves, asked, w) {
    const h = 240, left = 58, right = 8, top = 10, bottom = 22;
    const times = curves.flatMap((c) => c.points.map((p) => p[0]));
    if (times.length < 2) return null;
    const from = Math.min(...times), to = Math.max(...times);
    const values = curves.flatMap((c) => c.points.map((p) => p[1])).filter(known);
    const max = Math.max(1, ...values, asked || 0) * 1.08;
    const x = (t) => left + (to > from ? (t - from) / (to - from) * (w - left - right) : 0);
    const y = (v) => top + (1 - v / max) * (h - top - bottom);
    const highest = values.length ? Math.max(...values) : null;
    const node = svg("svg", {viewBox: `0 0 ${w} ${h}`, class: "plot", role: "img",
        "aria-label": `VRAM over ${duration((to - from) / 1000)}, at most ${mib(highest)}` +
            (asked ? `, requested ${mib(asked)}` : "")});
    const step = niceStep(max / 1024);
    for (let g = 0; g * 1024 <= max; g += step) {
        node.append(svg("line", {class: "grid", x1: left, x2: w - right, y1: y(g * 1024), y2: y(g * 1024)}));
        node.append(svg("text", {x: left - 6, y: y(g * 1024) + 4, "text-anchor": "end"},
            (step < 1 ? g.toFixed(1) : g) + " GiB"));
    }
    const marks = w > 560 ? 4 : 2;
    for (let i = 0; i <= marks; i++) {
        const t = from + (to - from) * i / marks;
        node.append(svg("text", {x: x(t), y: h - 5,
            "text-anchor": i === 0 ? "start" : i === marks ? "end" : "middle"},
            to - from < 600e6 ? "+" + duration((t - from) / 1000) : clock(t / 1e6)));
    }
    for (const c of curves) {
        node.append(svg("path", {class: "area " + c.css, d: path(c.points, x, y, y(0))}));
        node.append(svg("path", {class: "line " + c.css, d: path(c.points, x, y)}));
    }
    if (asked) {
        node.append(svg("line", {class: "asked", x1: left, x2: w - right, y1: y(asked), y2: y(asked)}));
        node.append(svg("text", {class: "asked", x: w - right, y: y(asked) - 4, "text-anchor": "end"},
            "requested " + mib(asked)));
    }
    return node;
}
