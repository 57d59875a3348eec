import { useState } from "react";
import { type EventData } from "../../api/types.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import { kindOfAddress } from "../markdown/address.ts";
import { BlockHead } from "./BlockHead.tsx";
import styles from "./Reply.module.css";

/** Picture, sound or film by reference. Media of other sites is not loaded, but linked. */
export function MediaBlock({ data }: { data: EventData<"media"> }) {
  const t = useText(reply);
  const { type, src, alt } = data;
  const kind = kindOfAddress(src);
  const title = t(type === "audio" || type === "video" ? type : "image");
  return (
    <div className={`${styles["block"] ?? ""} ${styles["media"] ?? ""}`}>
      <BlockHead title={title} />
      {kind === "relative" && <OwnMedia data={data} />}
      {kind !== "relative" && (
        <>
          <div>{alt === "" ? title : alt}</div>
          <div className={styles["muted"]}>
            <code>{src}</code>
          </div>
          {kind === "https" && (
            <div className={styles["muted"]}>
              {t("mediaForeign")}{" "}
              <a href={src} target="_blank" rel="noopener noreferrer nofollow">
                {t("openMedia")}
              </a>
            </div>
          )}
          {kind === "asset" && <div className={styles["muted"]}>{t("mediaAsset")}</div>}
        </>
      )}
    </div>
  );
}

function OwnMedia({ data: { type, src, alt } }: { data: EventData<"media"> }) {
  const t = useText(reply);
  const [missing, setMissing] = useState(false);
  if (missing) {
    return (
      <>
        <div>{alt}</div>
        <div className={styles["muted"]}>
          <code>{src}</code> {t("mediaMissing")}
        </div>
      </>
    );
  }
  const fail = () => setMissing(true);
  switch (type) {
    case "audio":
      // Media that a model refers to has no captions.
      // eslint-disable-next-line jsx-a11y/media-has-caption
      return <audio controls preload="metadata" src={src} aria-label={alt} onError={fail} />;
    case "video":
      // eslint-disable-next-line jsx-a11y/media-has-caption
      return <video controls preload="metadata" src={src} aria-label={alt} onError={fail} />;
    default:
      // Reports a missing file.
      return <img src={src} alt={alt} loading="lazy" onError={fail} />;
  }
}
