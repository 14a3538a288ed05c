// The console's only hand-written script. Every page works without it: it draws charts beside their tables, moves with the keyboard, and prints.
"use strict";
(() => {
	const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

	// Draws the chart of a table: one row per day.
	function draw(box) {
		const table = document.getElementById(box.dataset.chart);
		if (!table || !window.uPlot) return;
		const rows = [...table.tBodies[0].rows];
		const days = rows.map((r) => r.dataset.day);
		if (!days.length) return;
		const data = [days.map((_, i) => i), rows.map((r) => Number(r.dataset.used) || null), rows.map((r) => Number(r.dataset.over) || null)];
		const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
		const axis = { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, font: "12px " + css("--sans") };
		const bars = uPlot.paths.bars({ size: [0.7, 60] });
		const number = (_, v) => (v == null ? "" : whole.format(v) + " " + box.dataset.unit);
		box.replaceChildren();
		new uPlot({
			width: box.clientWidth, height: 220,
			scales: { x: { time: false, range: (_, lo, hi) => [lo - 0.6, hi + 0.6] }, y: { range: (_, lo, hi) => [0, Math.max(1, hi) * 1.05] } },
			axes: [
				{ ...axis, grid: { show: false }, incrs: [1, 2, 5, 7, 14], values: (_, at) => at.map((i) => (days[i] || "").slice(5)) },
				{ ...axis, size: 80, values: (_, at) => at.map((v) => whole.format(v)) },
			],
			series: [
				{ label: "day", value: (_, v) => (v == null ? "" : days[v]) },
				{ label: "used", fill: css("--used"), stroke: css("--used"), paths: bars, points: { show: false }, value: number },
				{ label: "overage", fill: css("--over"), stroke: css("--over"), paths: bars, points: { show: false }, value: number },
			],
		}, data, box);
	}
	const drawAll = () => document.querySelectorAll("[data-chart]").forEach(draw);
	drawAll();
	let resized;
	addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawAll, 150); });
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

	// Details that a person opened or closed stay so when htmx exchanges what they are in.
	let open = null;
	document.body.addEventListener("htmx:beforeSwap", (e) => { open = [...e.detail.target.querySelectorAll("details")].map((d) => d.open); });
	document.body.addEventListener("htmx:afterSwap", (e) => {
		const now = [...e.detail.target.querySelectorAll("details")];
		if (open && open.length === now.length) now.forEach((d, i) => { d.open = open[i]; });
		open = null;
	});

	addEventListener("click", (e) => { if (e.target.closest("[data-print]")) print(); });

	// "/" goes to the search, j and k to the next and previous row of a list.
	addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
		if (e.key === "Escape" && typing) return e.target.blur();
		if (typing) return;
		if (e.key === "/") {
			const field = document.querySelector('[data-key="/"]');
			if (field) { e.preventDefault(); field.focus(); field.select(); }
		} else if (e.key === "j" || e.key === "k") {
			const links = [...document.querySelectorAll("[data-rows] th a")];
			const at = links.indexOf(document.activeElement);
			const next = links[at < 0 ? 0 : at + (e.key === "j" ? 1 : -1)];
			if (next) { e.preventDefault(); next.focus(); }
		}
	});
})();
