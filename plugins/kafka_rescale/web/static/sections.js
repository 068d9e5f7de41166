// The sections of one application. Each gets its part of the data, and is drawn again only if that part has changed.

import { bars, heatMap, lagChart, nameOf, paletteOf, stackedBar } from "./charts.js";
import { change, clock, duration, el, lagText, size, moment, runLink, short, whole } from "./dom.js";
import { asTable, choice, paged, table } from "./tables.js";

const PHASES = ["warming", "quiescing", "quiesced", "caught_up", "promoted", "started", "verified", "complete"];
const AT_WORK = ["running", "ready", "holding", "paused", "job_not_ready"];

export const badge = (level, text) => el("span", { class: `badge ${level}` }, text);

export function drawHead({ summary, work }) {
  const at = PHASES.indexOf(summary.phase);
  const facts = [
    ["running", summary.running], ["generation", `${summary.generation}`],
    ["partitions", change(summary.partitions, summary.target)], ["wanted by the file", `${summary.wanted}`],
    ["mode", summary.mode.replace("_", "-")], ["lag of the inputs", summary.lag === null ? "–" : `${whole(summary.lag)} offsets`],
  ];
  const phases = summary.phase === null ? null : el("ol", { class: "phases", "aria-label": "Phases of the expansion" },
    at < 0 ? el("li", { class: "now", "aria-current": "step" }, summary.phase.replace("_", " ")) :
      PHASES.map((phase, index) => el("li", { class: index < at || summary.phase === "complete" ? "past" : index === at ? "now" : "",
        "aria-current": index === at ? "step" : null }, phase.replace("_", " "))));
  return [
    el("p", { class: "reason" }, badge(summary.health.level, summary.health.state), " ", summary.health.reason),
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    phases,
    el("p", { class: "links" }, work.step ? el("strong", {}, `Now: ${work.step.replace("_", " ")}. `) : "",
      runLink(summary.run, summary.run.run_id ? "Go to the run" : "Go to the DAG"), " · ",
      runLink({ dag_id: summary.run.dag_id }, `DAG ${summary.run.dag_id}`)),
  ];
}

export function drawJobs({ jobs, pace }) {
  if (!jobs.length) return pace ? el("p", { class: "told" }, pace) : null;
  const rows = jobs.map((job) => {
    // The bridge has a run of its own, and an attempt may go on in another run.
    const [dag_id, ...rest] = job.run.split("/");
    const percent = job.share === null ? null : `${Math.floor(job.share * 100)} %`;
    const read = job.step === "prove" && AT_WORK.includes(job.state) ? " read" : "";
    const bar = percent === null ? "–" : [el("progress", { max: 1, value: job.share, "aria-label": `${job.job}: ${percent}${read}` }), ` ${percent}${read}`];
    const way = runLink({ dag_id, run_id: rest.join("/") }, job.step.replace("_", " "), job.task_id);
    return [way, job.stage === null ? "all" : `${job.stage}`, badge(job.state, job.state), el("span", { class: "share", title: job.detail || null }, bar),
      job.state === "done" ? "" : whole(job.lag), timeLeft(job),
      job.records ? whole(job.records) : "", job.seconds && job.bytes ? `${size(job.bytes / job.seconds)}/s` : ""];
  });
  return [
    pace ? el("p", { class: "told" }, pace) : null,
    table("Progress of every job", ["task", "stage", "state", "copied", "lag", "time left", "records", "speed"], rows, { numeric: [4, 5, 6, 7], narrow: [0, 1, 2] }),
  ].filter(Boolean);
}

function timeLeft({ step, state, lag, eta_seconds, has_pace }) {
  if (!AT_WORK.includes(state)) return "";
  // A proof that has read everything still sorts and compares it.
  if (lag === 0 && step !== "prove") return "0 s";
  return lag !== null && eta_seconds === null && has_pace ? "does not shrink" : duration(eta_seconds);
}

export function lagSection() {
  const state = { job: null, order: "largest first", page: 0, topic: null };
  let redraw = () => {};
  const draw = ({ lags, lags_now, measured_by, measured_ms, threshold, is_gated, warming }) => {
    if (!lags.length) return null;
    redraw = () => holder.replaceChildren(...contents());
    const holder = el("div", {});
    const series = lags.map(({ job, history }) => ({ name: job, points: begun(history.samples) })).filter((each) => each.points.length);
    const contents = () => {
      const jobs = lags.map((each) => each.job);
      const chosen = lags.find((each) => each.job === state.job) ?? lags.find((each) => each.job === measured_by);
      return [
        ...(series.length ? lagChart(series, threshold) : [el("p", {}, "No copy has begun yet.")]),
        asTable(paged("Largest lag over time", ["job", "time", "largest lag", "all partitions"], ...seriesRows(lags), { numeric: [2, 3] })),
        el("h3", {}, "Partitions over time"),
        choice("Measured by", jobs, chosen.job, (job) => { state.job = job; redraw(); }),
        ...heatMap(chosen.history, threshold, warming),
        asTable(paged("Lags per row of partitions, newest reading", ["partitions", "largest lag"], chosen.history.rows.length,
          (i) => [nameOf(chosen.history.rows[i]), lagText(chosen.history.samples.at(-1).worst[i])], { numeric: [1] })),
        el("h3", {}, `Every partition, ${moment(measured_ms)}, measured by ${measured_by}`),
        partitions(lags_now, threshold, is_gated, warming, state, () => redraw()),
      ];
    };
    redraw();
    return holder;
  };
  return draw;
}

// Before the copy of a partition has begun, it has no position, and so no lag.
const begun = (samples) => samples.map((s) => ({ at: s.at_ms, lag: Math.max(...s.worst) })).filter((point) => point.lag >= 0);

function seriesRows(lags) {
  const rows = lags.flatMap(({ job, history }) => history.samples.map((s) => [job, clock(s.at_ms), lagText(Math.max(...s.worst)), whole(s.total)]));
  return [rows.length, (index) => rows[index]];
}

function partitions(topics, threshold, gated, warming, state, redraw) {
  const all = topics.flatMap(({ topic, lags }) => lags.map((lag, partition) => ({ topic, partition, lag })));
  const beyond = all.filter((each) => each.lag < 0 || each.lag > threshold).length;
  if (state.order === "largest first") all.sort((a, b) => (a.lag < 0 ? -1 : b.lag < 0 ? 1 : b.lag - a.lag));
  const gate = (lag) => (lag >= 0 && lag <= threshold ? badge("good", "within") : badge("attention", warming ? "holds" : "beyond"));
  // If no gate waits for these partitions, the column about the gate is left out.
  const row = (i) => [all[i].topic, `${all[i].partition}`, lagText(all[i].lag), ...(gated ? [gate(all[i].lag)] : [])];
  const told = beyond ? `${whole(beyond)} of ${whole(all.length)} partitions ${warming ? "hold the gate" : "were beyond the threshold"}.` : `All ${whole(all.length)} partitions are within ${whole(threshold)} offsets. `;
  return el("div", {},
    el("p", {}, gated ? told : `${whole(all.length)} partitions. No gate waits for them.`, " ",
      choice("Order", ["largest first", "by topic"], state.order, (order) => { state.order = order; state.page = 0; redraw(); })),
    paged("Lag of every partition", ["topic", "partition", "lag", ...(gated ? ["gate"] : [])], all.length, row, { numeric: [1, 2], state }));
}

export function drawCutover({ steps, told }) {
  if (!steps.length) return null;
  const names = (step) => el("ul", { class: "names" }, step.names.map((name) => el("li", {}, el("code", {}, name))));
  const rows = steps.map((step, i) => [`${i + 1}`, step.moment, step.does, step.names.length ? names(step) : ""]);
  return [
    told ? el("p", { class: "told" }, told) : null,
    el("details", {}, el("summary", {}, `What the cutover will do: ${steps.length} steps, and the names that each touches`),
      table("What the cutover will do", ["", "when", "step", "names"], rows, { narrow: [0, 1] })),
  ].filter(Boolean);
}

export function drawDowntime({ downtime, now_ms }) {
  const { parts, total, since_ms, prewarmed, remark } = downtime;
  if (!parts.length && since_ms === null) return null;
  const whole_pause = total ?? parts.reduce((sum, part) => sum + part.seconds, 0);
  const warmed = Object.entries(prewarmed).map(([name, seconds]) => `${name} ${duration(seconds)}`).join(", ");
  // After a rollback the parts are not the whole pause: neither the part that has failed nor the new start is measured.
  const [figure, told] = since_ms !== null ? [duration((now_ms - since_ms) / 1000), ` since ${clock(since_ms)}: nothing is being processed.`]
    : total !== null ? [duration(total), " in which nothing was processed."] : ["Not measured", " for how long nothing was processed. Of it are known:"];
  return [
    el("p", {}, el("strong", { class: "big" }, figure), told),
    parts.length && whole_pause ? stackedBar(parts, whole_pause) : null,
    table("The pause in its parts", ["part", "what", "seconds"], parts.map((part, i) =>
      [el("span", {}, el("span", { class: `swatch ${paletteOf(i)}` }), part.name.replace("_", " ")), part.meaning, part.seconds.toFixed(3)]), { numeric: [2], narrow: [0] }),
    warmed ? el("p", { class: "muted" }, `Pre-warming before the pause: ${warmed}.`) : null,
    remark ? el("p", { class: "muted" }, remark) : null,
  ].filter(Boolean);
}

export function proofSection() {
  const state = { store: null, page: 0 };
  return ({ proof, proven, report, now_ms }) => {
    const before = proven === null ? null : provenBefore(proven, now_ms);
    if (proof === null) return before && [before];
    const verdict = proof.passed ? "Passed" : "Findings";
    const head = el("p", {}, badge(proof.passed ? "good" : "bad", verdict), ` ${whole(proof.entries)} live entries of ${proof.stores} stores compared in ${duration(proof.seconds)}, ${moment(proof.as_of_ms)}.`,
      proof.accepted ? ` ${whole(proof.accepted)} findings were accepted by a person.` : "",
      proof.not_copied ? ` ${proof.not_copied}.` : "",
      proof.aborted ? ` ${proof.aborted}.` : "",
      proof.current ? "" : " This is the report of an earlier expansion.");
    if (!report?.stores) return [before, head].filter(Boolean);
    const holder = el("div", {});
    const redraw = () => holder.replaceChildren(...reportOf(report, state, redraw));
    redraw();
    return [before, head, holder].filter(Boolean);
  };
}

function provenSince(proven, now_ms) {
  if (proven.since_ms === null) return " What was written since is not compared yet.";
  const until = `up to ${duration((now_ms - proven.since_ms) / 1000)} ago (${whole(proven.since_records)} records)`;
  if (proven.since_findings > 0) return ` ${whole(proven.since_findings)} violations in what was written since, ${until}.`;
  return ` What was written since is compared ${until}.`;
}

function provenBefore(proven, now_ms) {
  const verdict = proven.passed ? badge("good", "Proven") : badge("bad", `${whole(proven.findings)} violations`);
  const left = proven.passed ? ` ${whole(proven.entries)} entries of ${proven.stores} stores are the same in both generations; ${whole(proven.excused)} keys that had been written since were left out.` : " Nothing is promoted with these.";
  return el("p", {}, verdict, ` Before the promotion, ${duration((now_ms - proven.as_of_ms) / 1000)} ago, in ${duration(proven.seconds)}.`, left,
    provenSince(proven, now_ms),
    proven.not_copied ? ` ${proven.not_copied}.` : "",
    proven.current ? "" : " It is of an earlier attempt: the next one proves its copies again.");
}

function reportOf(report, state, redraw) {
  const stores = report.stores.map((s) => [s.store, s.store_type, whole(s.blue.live), whole(s.green.live), whole(s.green.tombstoned), whole(s.expired),
    Object.keys(s.failures).length ? badge("bad", Object.entries(s.failures).map(([o, n]) => `${o} ${whole(n)}`).join(", ")) : badge("good", "equal")]);
  const inputs = report.inputs.map((i) => [i.topic, whole(i.records), i.misrouted ? badge("bad", whole(i.misrouted)) : "0", whole(i.accepted ?? 0)]);
  const accepted = (report.acceptances ?? []).map((a) => [a.finding, whole(a.records), a.by, moment(a.at_ms), a.reason]);
  const unaccepted = report.unaccepted ?? [];
  const lost = (report.aborted?.topics ?? []).flatMap((t) => t.first.map((r) => ({ oracle: "aborted", subject: `${t.topic}-${r.partition}`, key: r.key, detail: `offset ${whole(r.offset)}: not written again` })));
  const found = [...report.start_offsets, ...lost, ...report.stores.flatMap((s) => s.findings)];
  const chosen = report.stores.find((s) => s.store === state.store) ?? report.stores[0];
  const unequal = () => (chosen.excused && !Object.keys(chosen.failures).length ? "not all compared" : badge("bad", "differs"));
  const row = (i) => { const p = chosen.partitions[i]; return [`${p.partition}`, whole(p.blue_live), whole(p.green_live), p.blue_hash, p.green_hash, p.blue_hash === p.green_hash ? "=" : unequal()]; };
  return [
    table("Stores compared", ["store", "type", `live in ${report.blue}`, `live in ${report.green}`, "deleted", "expired", "result"], stores, { numeric: [2, 3, 4, 5] }),
    inputs.length ? table("Records since the cutover", ["input", "records looked at", "misrouted", "accepted"], inputs, { numeric: [1, 2, 3] }) : null,
    accepted.length ? table("Findings that a person has accepted", ["finding", "how many", "by", "when", "why"], accepted, { numeric: [1] }) : null,
    found.length ? el("h3", {}, "Findings") : null,
    unaccepted.length ? el("p", {}, "If a person decides to accept them, these are their names: ", el("code", {}, unaccepted.join(" "))) : null,
    found.length ? paged("Findings", ["oracle", "where", "key", "detail"], found.length, (i) => [found[i].oracle, found[i].subject, found[i].text || found[i].key, found[i].detail]) : null,
    chosen ? el("details", {}, el("summary", {}, "Hashes per partition"),
      choice("Store", report.stores.map((s) => s.store), chosen.store, (store) => { state.store = store; state.page = 0; redraw(); }),
      paged(`Entries of ${chosen.store} by partition`, ["partition", "live before", "live after", "hash before", "hash after", ""], chosen.partitions.length, row, { numeric: [0, 1, 2], state })) : null,
  ].filter(Boolean);
}

export function drawAutoscaling({ autoscaling }) {
  const { enabled, failures, outcome, said, parallelism } = autoscaling;
  return [
    el("p", {}, badge(enabled ? "good" : "", enabled ? "enabled" : "off"), " ", outcome ? `${outcome.replaceAll("_", " ")}: ${said}` : "The watch has had nothing to do yet.",
      failures ? ` ${whole(failures)} failures.` : ""),
    table("Parallelism of every sub-topology", ["sub-topology", "current", "expected", "failures"],
      parallelism.map((each) => [`${each.subtopology}`, `${each.current}`, `${each.expected}`, `${failures}`]), { numeric: [1, 2, 3], narrow: [0] }),
  ];
}

export function drawHistory({ history }) {
  if (!history.rows.length) return null;
  const cell = (value) => (value === null ? "–" : typeof value === "number" ? whole(value) : value);
  const numeric = history.header.flatMap((name, i) => (name.endsWith("copied") ? [i] : []));
  return paged("Expansions that have ended", history.header, history.rows.length, (i) => history.rows[i].map(cell), { numeric });
}

export function drawDistributions({ distributions }) {
  if (!distributions.length) return null;
  return distributions.map(({ store, before, after, skew_before, skew_after }) => {
    const most = Math.max(1, ...before, ...after);
    const side = (counts, name, title, skew) => el("figure", {}, el("figcaption", {}, `${title}: ${counts.length} partitions`, skew === null ? "" : `, the fullest has ${skew} × the mean`),
      bars(counts, most, name));
    const rows = Math.max(before.length, after.length);
    return el("div", { class: "distribution" }, el("h3", {}, store, el("span", { class: "muted" }, ` ${short(after.reduce((a, b) => a + b, 0))} entries`)),
      el("div", { class: "pair" }, before.length ? side(before, "blue", "before", skew_before) : null, side(after, "green", "after", skew_after)),
      asTable(paged(`Entries of ${store}`, ["partition", "before", "after"], rows, (i) => [`${i}`, i < before.length ? whole(before[i]) : "", i < after.length ? whole(after[i]) : ""], { numeric: [0, 1, 2] })));
  });
}
