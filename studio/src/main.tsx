import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App.tsx";
import { giveNonceToStyles } from "./app/nonce.ts";
import "./app/styles.css";

giveNonceToStyles();
const root = document.getElementById("root");
if (root === null) throw new Error("the page has a root element");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
