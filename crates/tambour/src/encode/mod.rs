//! Encoders of events to bytes, one file per format: JSON Lines, Server-Sent Events in the protocols `legacy`
//! and `jsonseq_v1`, and protocols of other clients: [`chat`], [`responses`], [`anthropic`], [`ai_sdk`],
//! [`ag_ui`].
//!
//! Encoders append to a `Vec<u8>`. Those of the native protocols need only an entry and its number, so that
//! any part of a log can be encoded again; those of other protocols read the log from its first entry on.
//! Sockets, and the requests that choose a protocol, do not belong here.

pub mod ag_ui;
pub mod ai_sdk;
pub mod anthropic;
pub mod chat;
mod client_protocol;
mod encoder;
mod entry_content;
mod json;
pub mod jsonl;
pub mod jsonseq;
pub mod legacy;
pub mod responses;
pub mod sse;

pub use client_protocol::StreamContext;
#[doc(hidden)]
pub use client_protocol::UsageCounts;
pub use encoder::{Encoder, EncoderEntry, EncoderEntryKind, NativeEncoder};
pub use entry_content::FoldedMessage;
#[doc(hidden)]
pub use json::{write_data, write_number, write_string};

/// Native protocol in which events are written to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputProtocol {
    /// Raw reply text in `content_delta`, and the whole reply in `completed` (J-032).
    #[default]
    Legacy,
    /// Contract events (J-001).
    JsonSeqV1,
}

impl OutputProtocol {
    /// All protocols.
    pub const ALL: &[OutputProtocol] = &[OutputProtocol::Legacy, OutputProtocol::JsonSeqV1];

    /// Public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OutputProtocol::Legacy => "legacy",
            OutputProtocol::JsonSeqV1 => "jsonseq_v1",
        }
    }

    /// Protocol called `name`; `None` if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<OutputProtocol> {
        OutputProtocol::ALL.iter().copied().find(|protocol| protocol.name() == name)
    }

    /// Protocol that the setting `llm_app_settings.app_output_protocol` selects: `legacy` unless the
    /// setting names another protocol (J-032).
    #[doc(hidden)]
    #[must_use]
    pub fn from_setting(setting: Option<&str>) -> OutputProtocol {
        setting.and_then(OutputProtocol::from_name).unwrap_or_default()
    }
}
