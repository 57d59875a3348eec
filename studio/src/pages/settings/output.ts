import { type Schemas } from "../../api/types.ts";
import { defaults } from "../../i18n/texts/defaults.ts";

type Settings = Schemas["Settings"];
type Texts = Settings["texts"];

/** Settings that the form changes, by the server's names. */
export type Values = Pick<Settings, "llm_app_settings" | "text_language" | "thought_display" | "texts">;

/** Fields of the form, by name. */
export const FIELDS = [
  ["llm_app_settings", "app_output_protocol"],
  ["text_language"],
  ["thought_display"],
  ["texts", "fallback"],
  ["texts", "phase_title"],
] as const;

/** Default text of the server, whose settings do not tell whether a text was written by a user. */
export const defaultText = (name: keyof Texts, language: Settings["text_language"]): string => defaults[name][language];

/** Settings as form values: a default text is left empty. */
export function valuesOf({ llm_app_settings, text_language, thought_display, texts }: Settings): Values {
  const own = (name: keyof Texts) => (texts[name] === defaultText(name, text_language) ? "" : texts[name]);
  return { llm_app_settings, text_language, thought_display, texts: { fallback: own("fallback"), phase_title: own("phase_title") } };
}

/** Differences from the settings that the form was filled from. An emptied text becomes the default again. */
export function changesIn(values: Values, settings: Settings): Schemas["SettingsChange"] {
  const before = valuesOf(settings);
  const { app_output_protocol: protocol } = values.llm_app_settings;
  const texts = (["fallback", "phase_title"] as const).flatMap((name): [keyof Texts, string][] => {
    const text = values.texts[name].trim();
    if (text === before.texts[name].trim()) return [];
    return [[name, text === "" ? defaultText(name, values.text_language) : text]];
  });
  return {
    ...(protocol === before.llm_app_settings.app_output_protocol ? {} : { llm_app_settings: { app_output_protocol: protocol } }),
    ...(values.text_language === before.text_language ? {} : { text_language: values.text_language }),
    ...(values.thought_display === before.thought_display ? {} : { thought_display: values.thought_display }),
    ...(texts.length === 0 ? {} : { texts: Object.fromEntries(texts) }),
  };
}
