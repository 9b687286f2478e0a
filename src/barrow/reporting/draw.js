// Draws the figures of a report with BokehJS. Data, words and units come from figures.py.
(() => {
  "use strict";
  let figures = JSON.parse(document.getElementById("figures").textContent);
  const narrow = matchMedia("(max-width: 600px)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const NARROW_LABEL = 10;

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // Made of text nodes, never of HTML: names come from users and from files.
  const makeTooltip = (rows) => (source, {index}) => {
    const box = document.createElement("div");
    box.style.cssText =
      "max-width: 20rem; overflow-wrap: anywhere; font: 12px/1.4 system-ui, sans-serif;" +
      `color: ${colour("ink")}; unicode-bidi: isolate`;
    for (const [heading, column] of rows) {
      const line = document.createElement("div");
      const value = String(source.get_column(column)?.[index ?? 0] ?? "");
      line.textContent = heading === "" ? value : `${heading}: ${value}`;
      if (heading === "") line.style.fontWeight = "600";
      box.append(line);
    }
    return box;
  };

  const addLayer = (plot, layer) => {
    const source = new Bokeh.ColumnDataSource({data: layer.data});
    const ink = colour(layer.colour);
    const alpha = typeof layer.alpha === "string" ? {field: layer.alpha} : layer.alpha;
    const place = (...names) => Object.fromEntries(names.map((name) => [name, {field: name}]));
    const edge = colour(layer.edge ?? layer.colour);
    const line = {line_color: edge, line_width: layer.width, line_dash: layer.dash};
    let renderer;
    if (layer.glyph === "line") {
      renderer = plot.line({...place("x", "y"), ...line, line_join: "round", source});
    } else if (layer.glyph === "scatter") {
      const look = {marker: layer.marker, size: layer.size, fill_color: ink, fill_alpha: alpha};
      renderer = plot.scatter({...place("x", "y"), ...look, ...line, line_alpha: alpha, source});
      if (layer.width === 0) renderer.glyph.line_color = {value: null};
    } else {
      const look = {fill_color: ink, fill_alpha: alpha, line_alpha: alpha};
      renderer = plot.quad({...place("left", "right", "top", "bottom"), ...line, ...look, source});
      if (layer.width === 0) renderer.glyph.line_color = {value: null};
    }
    if (layer.hover.length !== 0) {
      const tooltips = makeTooltip(layer.hover);
      plot.add_tools(new Bokeh.HoverTool({renderers: [renderer], tooltips, limit: 1}));
    }
  };

  const makeTicker = (spec) => new Bokeh.FixedTicker({ticks: spec.ticks.map(([at]) => at)});

  const styleAxis = (axis, spec) => {
    const font = "system-ui, sans-serif";
    Object.assign(axis, {
      axis_label: spec.label === "" ? null : spec.label,
      axis_label_text_color: colour("soft"),
      axis_label_text_font: font,
      axis_label_text_font_size: "12px",
      axis_label_text_font_style: "normal",
      axis_line_color: colour("line"),
      major_label_text_color: colour("soft"),
      major_label_text_font: font,
      major_label_text_font_size: "11px",
      major_tick_line_color: colour("line"),
      minor_tick_line_color: null,
    });
    if (spec.ticks !== null) {
      // Lanes have names of any length.
      const fit = (text) =>
        narrow.matches && text.length > NARROW_LABEL ? `…${text.slice(-NARROW_LABEL)}` : text;
      axis.ticker = makeTicker(spec);
      axis.major_label_overrides = new Map(spec.ticks.map(([at, text]) => [at, fit(text)]));
      if (spec.scale === "linear") axis.major_tick_line_color = null;
    }
  };

  const makePlot = (spec) => {
    const plot = Bokeh.Plotting.figure({
      height: spec.height,
      sizing_mode: "stretch_width",
      x_range: new Bokeh.Range1d({start: spec.x.start, end: spec.x.end}),
      y_range: new Bokeh.Range1d({start: spec.y.start, end: spec.y.end}),
      x_axis_type: spec.x.scale,
      y_axis_type: spec.y.scale,
      tools: "xpan,xbox_zoom,reset",
      toolbar_location: "above",
      background_fill_color: null,
      border_fill_color: null,
      outline_line_color: null,
      min_border_right: 14,
      min_border_top: 4,
    });
    plot.toolbar.logo = null;
    plot.toolbar.autohide = true;
    styleAxis(plot.xaxis, spec.x);
    styleAxis(plot.yaxis, spec.y);
    plot.xgrid.grid_line_color = null;
    const isNamed = spec.y.ticks !== null && spec.y.scale === "linear";
    plot.ygrid.grid_line_color = isNamed ? null : colour("grid");
    if (spec.y.scale === "log") plot.ygrid.ticker = makeTicker(spec.y);
    for (const layer of spec.layers) addLayer(plot, layer);
    return plot;
  };

  const draw = async (root) => {
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
    for (const spec of figures) {
      const place = root.querySelector(`#figure-${spec.name}`);
      place.replaceChildren();
      try {
        await Bokeh.Plotting.show(makePlot(spec), place);
      } catch (error) {
        // One figure less must not cost the others.
        place.textContent = "This figure could not be drawn.";
        console.error(error);
      }
    }
    document.documentElement.dataset.ready = "true";
  };

  let drawing = draw(document);
  const redraw = () => {
    drawing = drawing.then(() => draw(document));
  };
  // For a page that goes on: other figures, in a part that takes the place of the old one.
  window.drawAnew = (root, newFigures) => {
    drawing = drawing.then(() => {
      figures = newFigures;
      return draw(root);
    });
    return drawing;
  };
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
})();
