// Shows openapi.json. Text only: nothing of the document is read as markup.
const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};
const shape = (schema) => {
  const ref = schema.$ref;
  if (ref) return ref.split("/").pop();
  const either = schema.oneOf ?? schema.anyOf;
  if (either) return either.map(shape).join(" or ");
  const type = [].concat(schema.type ?? "any").join(" or ");
  return schema.items ? `${type} of ${shape(schema.items)}` : type;
};
const fields = (schema) => {
  const table = make("table");
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const must = (schema.required ?? []).includes(name) ? "" : "?";
    table.append(make("tr", "", make("td", "", make("code", name + must)), make("td", shape(field)), make("td", field.description)));
  }
  return table;
};
const example = (content) => {
  const [found] = Object.values(content ?? {}).filter((one) => "example" in one).map((one) => one.example);
  if (found === undefined) return [];
  return [make("pre", typeof found === "string" ? found : JSON.stringify(found, null, 2))];
};
const group = (api, tag) => {
  const about = (api.tags ?? []).find((one) => one.name === tag)?.description;
  return make("section", "", make("h2", tag), make("p", about));
};
fetch("/openapi.json").then((answer) => answer.json()).then((api) => {
  const operations = document.getElementById("operations");
  operations.textContent = "";
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const verb = make("span", method);
      verb.className = "method";
      const details = make("details", "", make("summary", "", verb, make("code", path), ` ${operation.summary}`));
      for (const parameter of operation.parameters ?? []) {
        details.append(make("p", `${parameter.name} (${parameter.in}) ${parameter.description ?? ""}`));
      }
      const body = operation.requestBody?.content["application/json"].schema;
      if (body) details.append(make("p", `body: ${shape(body)}`), ...example(operation.requestBody.content));
      for (const [status, answer] of Object.entries(operation.responses)) {
        const schema = Object.values(answer.content ?? {})[0]?.schema;
        const codes = answer.description.split("\n");
        if (status < 400) {
          details.append(make("p", `${status}: ${answer.description}${schema ? `: ${shape(schema)}` : ""}`), ...example(answer.content));
        } else {
          details.append(make("p", `${status}:`), make("ul", "", ...codes.map((line) => make("li", line.replaceAll("`", "")))));
        }
      }
      details.id = operation.operationId;
      const [tag] = operation.tags;
      if (!groups.has(tag)) {
        groups.set(tag, group(api, tag));
        operations.append(groups.get(tag));
      }
      groups.get(tag).append(details);
    }
  }
  const schemas = document.getElementById("schemas");
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    schemas.append(make("details", "", make("summary", "", make("code", name)), fields(schema)));
  }
});
