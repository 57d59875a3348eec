import { type ReactNode } from "react";
import { NavLink } from "react-router";
import { type ApiError } from "../../api/errors.ts";
import { Content, Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { prompts } from "../../i18n/texts/prompts.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./PromptsFrame.module.css";

type FrameProps = {
  purpose: string;
  actions?: ReactNode;
  loading?: boolean;
  error?: ApiError | null;
  onRetry?: () => void;
  children: ReactNode;
};

const SECTIONS = [
  ["/prompts", "templates"],
  ["/prompts/imports", "imports"],
  ["/prompts/preview", "preview"],
  ["/prompts/macros", "macros"],
] as const;

/** Page about prompts, with links to the others. */
export function PromptsFrame({ purpose, actions, children, ...state }: FrameProps) {
  const t = useText(prompts);
  const frame = useText(app);
  return (
    <Page title={frame("prompts")} purpose={purpose} actions={actions}>
      <nav className={styles["sections"]} aria-label={t("sections")}>
        {SECTIONS.map(([path, name]) => (
          <NavLink key={path} to={path} end className={styles["section"] ?? ""}>
            {t(name)}
          </NavLink>
        ))}
      </nav>
      <Content loading={state.loading} error={state.error} onRetry={state.onRetry}>{children}</Content>
    </Page>
  );
}
