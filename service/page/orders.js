// What an operator may order of a job: pause, resume and stop. Each is asked once more before it is
// sent, and only what the job's state allows can be chosen.

import { post } from "./api.js";
import { h } from "./dom.js";
import { refusal, said, SENT } from "./parts.js";

const ORDERS = {
  pause: ["Pause", "Pause this job?", "Its runner ends after the batch; records stay in Kafka until it is resumed."],
  resume: ["Resume", "Resume this job?", "It goes on behind its last committed batch."],
  stop: ["Stop", "Stop this job?", "Its runner ends after the batch; it keeps its place and can be resumed."],
};

/** Which orders the job's state allows. */
export function allowed({ state, desired_state: wanted }) {
  const isOver = wanted === "REMOVED" || state === "FINISHED";
  const isFailed = state === "FAILED";
  return {
    pause: !isOver && !isFailed && wanted === "RUNNING",
    resume: !isOver && (isFailed || wanted === "PAUSED" || wanted === "STOPPED"),
    stop: !isOver && !isFailed && wanted !== "STOPPED",
  };
}

/** The orders for one job. Of `told` is called: `changed()`, `done(job)`, `failed(error)`. */
export class Orders {
  asked = null;
  isSending = false;
  error = null;
  done = null; // what the last decision has brought
  #path;
  #told;

  constructor(path, told) {
    this.#path = path;
    this.#told = told;
  }

  /** Ask whether `name` is meant. */
  ask(name) {
    Object.assign(this, { asked: name, error: null });
  }

  cancel() {
    this.asked = null;
  }

  /** Send what was asked for; `job` is as it stands now. */
  async send(job) {
    if (this.isSending || !this.asked || !allowed(job)[this.asked]) return;
    const action = this.asked === "resume" && job.desired_state !== "PAUSED" ? "start" : this.asked;
    await this.#carryOut(async () => this.#told.done(await post(`${this.#path}:${action}`, action === "start" || action === "resume" ? undefined : { by: "the status page" })));
  }

  /** Decide what the job waits for: the route that `sluice acknowledge` calls, kept as that is. */
  async acknowledge(cause, choice, reason) {
    if (this.isSending) return;
    await this.#carryOut(async () => {
      const answer = await post(`${this.#path}:acknowledge`, { cause, choice, reason, by: "status page" });
      this.done = answer.status === "waiting" ? SENT : "It is acknowledged.";
    });
  }

  async #carryOut(order) {
    Object.assign(this, { asked: null, isSending: true, error: null, done: null });
    this.#told.changed();
    try {
      await order();
    } catch (error) {
      this.error = error;
      this.#told.failed(error);
    }
    this.isSending = false;
    this.#told.changed();
  }
}

/** The button of one order. */
export function orderButton(name, job, orders) {
  return h(
    "button",
    { type: "button", "data-action": "order", "data-order": name, disabled: !allowed(job)[name] || orders.isSending },
    ORDERS[name][0],
  );
}

/** The buttons, and the question behind the one that was chosen; the remedy has its own. */
export function ordersView({ job, orders }) {
  const may = allowed(job);
  const isRemedy = ["start", "resume"].includes(job.status?.action);
  const names = Object.keys(ORDERS).filter((name) => may[name] && !(isRemedy && name === "resume"));
  return h(
    "div",
    { class: "orders", "data-key": "orders", role: "group", "aria-label": "Orders" },
    names.length > 0 && h("div", { class: "buttons" }, names.map((name) => orderButton(name, job, orders))),
    orders.asked && may[orders.asked] && question(ORDERS[orders.asked], job),
    orders.done && h("p", { class: "fault note", role: "status" }, orders.done),
    orders.error && refusal("The order was not carried out", orders.error),
  );
}

function question([label, asked, meaning], job) {
  return h(
    "div",
    { class: "fault note", "data-key": "question" },
    h("p", { class: "fault-title" }, asked),
    h("p", {}, said(job.name), ": ", meaning),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", "data-action": "order-yes" }, `Yes, ${label.toLowerCase()} it`),
      h("button", { type: "button", "data-action": "order-no" }, "No"),
    ),
  );
}
