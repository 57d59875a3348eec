import { Link, useNavigate, useParams } from "react-router";
import { Button } from "antd";
import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { LongText } from "../../components/LongText.tsx";
import { Page } from "../../components/Page.tsx";
import { Badge } from "../../components/reply/Badge.tsx";
import { Section } from "../../components/Section.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import { DIALECTS } from "../live/request.ts";
import styles from "./Inspect.module.css";
import { type ExplainedRule } from "./rules.ts";

/** Rule with its examples; a code of several dialects is shown for each. */
export function Component() {
  const t = useText(inspect);
  const { code = "" } = useParams();
  const { data, error, loading, reload } = useResource(code, async (signal) => {
    const { data: found } = await api.get("/api/v1/rules/{name}", { path: { name: code }, signal });
    return found.data;
  });
  return (
    <Page
      title={code}
      purpose={data?.[0]?.title}
      actions={<Link to="/inspect/rules">{t("toRules")}</Link>}
      loading={loading && data === null}
      error={error}
      onRetry={reload}
    >
      {data?.map((rule) => (
        <RuleSection key={`${rule.owner} ${rule.rows.join(" ")}`} rule={rule} />
      ))}
    </Page>
  );
}

function RuleSection({ rule }: { rule: ExplainedRule }) {
  const t = useText(inspect);
  const navigate = useNavigate();
  const { owner, level, rows, title, with: options, broken, correct } = rule;
  const known = (DIALECTS as readonly string[]).includes(owner);
  return (
    <Section
      title={title}
      hint={t("rowsOf", { rows: rows.join(", ") })}
      actions={
        <span className={styles["line"]}>
          <Badge>{owner}</Badge> <Badge>{t(level)}</Badge>
        </span>
      }
    >
      {options.length > 0 && <p className={styles["muted"]}>{t("readWith", { options: options.join(", ") })}</p>}
      <div className={styles["split"]}>
        {(
          [
            ["broken", broken],
            ["correct", correct],
          ] as const
        ).map(([name, text]) => (
          <div key={name} className={styles["parts"]}>
            <div className={styles["line"]}>
              <Badge tone={name === "broken" ? "danger" : "success"}>{t(name)}</Badge>
              <Button
                className={styles["spread"] ?? ""}
                size="small"
                onClick={() =>
                  void navigate("/inspect", { state: { inspect: { text, ...(known ? { dialect: owner } : {}) } } })
                }
              >
                {t("tryExample")}
              </Button>
            </div>
            <LongText text={text} label={t(name)} />
          </div>
        ))}
      </div>
    </Section>
  );
}
