// The icons, as paths on a grid of 16 by 16.

const svg = "http://www.w3.org/2000/svg";

const paths = {
  command: "M2.5 4.5l3.5 3.5-3.5 3.5M8 12h5.5",
  file_write: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3 3 13zM9 4.7l2.3 2.3",
  file_read: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  network: "M8 2.5a5.5 5.5 0 100 11 5.5 5.5 0 000-11zM2.5 8h11M8 2.5c2.2 3.4 2.2 7.6 0 11M8 2.5c-2.2 3.4-2.2 7.6 0 11",
  mcp_tool: "M5.5 2.5v3M10.5 2.5v3M4 5.5h8v2.3a4 4 0 01-8 0zM8 11.8v2",
  question: "M5.8 6.2a2.2 2.2 0 113.3 1.9c-.7.4-1.1.9-1.1 1.7M8 12.3v.2",
  permission: "M10 2.8a3.2 3.2 0 11-2.6 5.1L3 12.3V14h2v-1.4h1.4v-1.4l1.2-1.2M10.7 5.2v.1",
  other: "M8 2.5l5.5 5.5L8 13.5 2.5 8z",
};

/** icon returns the icon of a request, named by the request's kind and action type. */
export function icon(request) {
  const name = request.kind === "tool_call" ? request.action_type : request.kind;
  const e = document.createElementNS(svg, "svg"), path = document.createElementNS(svg, "path");
  e.setAttribute("viewBox", "0 0 16 16");
  e.setAttribute("class", "icon");
  e.setAttribute("aria-hidden", "true");
  path.setAttribute("d", paths[name] ?? paths.other);
  e.append(path);
  return e;
}
