// The page: it chooses the application, and asks for its data every two seconds while the page is visible.

import { change, clock, el, runLink, section, whole } from "./dom.js";
import { drawGraph } from "./graph.js";
import { badge, drawAutoscaling, drawCutover, drawDistributions, drawDowntime, drawHead, drawHistory, drawJobs, lagSection, proofSection } from "./sections.js";
import { table } from "./tables.js";

const BUSY_MS = 2000;
const QUIET_MS = 10000;
const BUSY = ["rescaling", "paused"];

const chosen = new URLSearchParams(location.search).get("application");
const main = document.getElementById("main");
const freshness = document.getElementById("freshness");
let report = { as_of_ms: null, data: null };

async function ask(path) {
  const response = await fetch(path, { headers: { accept: "application/json" }, credentials: "same-origin" });
  if (response.ok) return response.json();
  const body = await response.json().catch(() => ({}));
  throw Object.assign(new Error(body.detail ?? response.statusText), { status: response.status });
}

function listPage() {
  const all = section("applications", "Applications", ({ applications }) => applications.length
    ? table("Applications", ["application", "state", "generation", "partitions", "lag of the inputs", "phase", "in Airflow"], applications.map(line), { numeric: [2, 3, 4], narrow: [0, 5, 6] })
    : el("p", {}, "There is no application whose runs you may see. To add one, write its file into applications/."));
  main.replaceChildren(all.node);
  return async () => {
    const applications = await ask("api/applications");
    all.update({ applications });
    return applications.some((each) => BUSY.includes(each.health.state));
  };
}

function line(each) {
  const name = el("a", { href: `?application=${encodeURIComponent(each.application)}` }, each.application);
  const state = el("span", {}, badge(each.health.level, each.health.state), " ", el("span", { class: "muted" }, each.health.reason));
  return [name, state, each.generation ? `${each.generation}` : "–", change(each.partitions ?? "–", each.target), whole(each.lag),
    (each.phase ?? "–").replace("_", " "), runLink(each.run, each.run.run_id ? "run" : "DAG")];
}

function applicationPage(name) {
  const parts = {
    head: section("head", name, drawHead),
    graph: section("topology", "Topology", drawGraph),
    jobs: section("progress", "Progress", drawJobs),
    lags: section("lag", "Lag per partition", lagSection()),
    cutover: section("cutover", "The switch", drawCutover),
    downtime: section("downtime", "Downtime", drawDowntime),
    proof: section("verification", "Verification", proofSection()),
    distributions: section("distribution", "Entries per partition, before and after", drawDistributions),
    autoscaling: section("autoscaling", "Autoscaling", drawAutoscaling),
    history: section("history", "Expansions that have ended", drawHistory),
  };
  main.replaceChildren(el("nav", { class: "back", "aria-label": "All applications" }, el("a", { href: "./" }, "‹ All applications")),
    ...Object.values(parts).map((part) => part.node));
  return async () => {
    const path = `api/applications/${encodeURIComponent(name)}`;
    const page = await ask(path);
    if (page.proof && page.proof.as_of_ms !== report.as_of_ms) report = { as_of_ms: page.proof.as_of_ms, data: await ask(`${path}/report`) };
    const { summary, work, graph, jobs, downtime, proof, proven, distributions } = page;
    parts.head.update({ summary, work });
    parts.graph.update({ graph, work });
    parts.jobs.update({ jobs, pace: page.pace });
    parts.lags.update({ lags: page.lags, lags_now: page.lags_now, measured_by: page.measured_by, measured_ms: page.measured_ms, threshold: page.threshold, is_gated: page.is_gated, warming: summary.phase === "warming" });
    parts.cutover.update({ steps: page.cutover, told: page.switch });
    parts.downtime.update({ downtime, now_ms: downtime.since_ms === null ? null : page.as_of_ms });
    parts.proof.update({ proof, proven, report: report.data, now_ms: proven === null ? null : page.as_of_ms });
    parts.distributions.update({ distributions });
    parts.autoscaling.update({ autoscaling: page.autoscaling });
    parts.history.update({ history: page.history });
    return BUSY.includes(summary.health.state);
  };
}

function colors() {
  // Within Airflow the page follows Airflow's own switch. Alone, it follows the system.
  const outer = window.parent === window ? null : window.parent.document.documentElement;
  const named = outer?.classList.contains("dark") ? "dark" : outer?.classList.contains("light") ? "light" : null;
  if (named) document.documentElement.dataset.theme = named;
}

async function run() {
  document.title = chosen ? `${chosen} · Kafka Rescale` : "Kafka Rescale";
  const refresh = chosen ? applicationPage(chosen) : listPage();
  let failed = null;
  for (;;) {
    let busy = true;
    try {
      busy = await refresh();
      failed?.remove();
      failed = null;
      freshness.textContent = `as of ${clock(Date.now())}`;
      document.body.dataset.ready = "true";
    } catch (error) {
      failed?.remove();
      failed = el("p", { class: "failure", role: "alert" }, error.status === 401 ? "You are not signed in any more. Reload the page." : error.message);
      main.prepend(failed);
    }
    await new Promise((go) => setTimeout(go, busy ? BUSY_MS : QUIET_MS));
    if (document.hidden) await new Promise((go) => document.addEventListener("visibilitychange", go, { once: true }));
  }
}

colors();
run();
