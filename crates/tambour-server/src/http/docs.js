// Shows openapi.json on the page `/docs`. All of it is inserted as text: nothing is read as markup.

// Creates an element with a text and children.
const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};
// Describes the type of a schema in a few words.
const typeText = (schema) => {
  const ref = schema.$ref;
  if (ref) return ref.split("/").pop();
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives) return alternatives.map(typeText).join(" or ");
  const type = [].concat(schema.type ?? "any").join(" or ");
  return schema.items ? `${type} of ${typeText(schema.items)}` : type;
};
// Creates the table of an object's fields; a `?` marks optional ones.
const fieldTable = (schema) => {
  const table = make("table");
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const mark = (schema.required ?? []).includes(name) ? "" : "?";
    table.append(make("tr", "", make("td", "", make("code", name + mark)), make("td", typeText(field)), make("td", field.description)));
  }
  return table;
};
// Creates the example of a request or response: a list of one element, or none.
const example = (content) => {
  const [found] = Object.values(content ?? {}).filter((media) => "example" in media).map((media) => media.example);
  if (found === undefined) return [];
  return [make("pre", typeof found === "string" ? found : JSON.stringify(found, null, 2))];
};
// Creates the section of a tag.
const createSection = (api, tag) => {
  const description = (api.tags ?? []).find((candidate) => candidate.name === tag)?.description;
  return make("section", "", make("h2", tag), make("p", description));
};
fetch("/openapi.json").then((answer) => answer.json()).then((api) => {
  const operations = document.getElementById("operations");
  operations.textContent = "";
  const sections = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const verb = make("span", method);
      verb.className = "method";
      const details = make("details", "", make("summary", "", verb, make("code", path), ` ${operation.summary}`));
      for (const parameter of operation.parameters ?? []) {
        details.append(make("p", `${parameter.name} (${parameter.in}) ${parameter.description ?? ""}`));
      }
      const body = operation.requestBody?.content["application/json"].schema;
      if (body) details.append(make("p", `body: ${typeText(body)}`), ...example(operation.requestBody.content));
      for (const [status, answer] of Object.entries(operation.responses)) {
        const schema = Object.values(answer.content ?? {})[0]?.schema;
        const codes = answer.description.split("\n");
        if (status < 400) {
          details.append(make("p", `${status}: ${answer.description}${schema ? `: ${typeText(schema)}` : ""}`), ...example(answer.content));
        } else {
          details.append(make("p", `${status}:`), make("ul", "", ...codes.map((line) => make("li", line.replaceAll("`", "")))));
        }
      }
      details.id = operation.operationId;
      const [tag] = operation.tags;
      if (!sections.has(tag)) {
        sections.set(tag, createSection(api, tag));
        operations.append(sections.get(tag));
      }
      sections.get(tag).append(details);
    }
  }
  const schemas = document.getElementById("schemas");
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    schemas.append(make("details", "", make("summary", "", make("code", name)), fieldTable(schema)));
  }
});
