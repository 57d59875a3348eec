//! World info: entries of lorebooks and the choice of those that go into a prompt
//! (`docs/from-sillytavern.md`).
//!
//! [`activate`] is a pure function of entries, messages, settings, timed effects of earlier turns and a token
//! counter. It returns the active entries, their places and the dropped entries.
//!
//! ```
//! use tambour_prompt::lore::{ChatLine, LoreEntry, LoreScan, activate};
//!
//! let entry = LoreEntry { title: "Forest".into(), keys: vec!["wood".into()], content: "It is dark.".into(), ..LoreEntry::default() };
//! let lines = [ChatLine { role: "user".into(), name: "Ann".into(), content: "Into the woods!".into() }];
//! let found = activate(&[entry], &LoreScan::new(&lines));
//! assert_eq!(found.slots.lore_before, [0]);
//! ```

mod activation;
mod entry;
mod group;
mod key;
mod pattern;
mod settings;
mod slots;
mod timed_effects;

pub use activation::{ActivationCause, DropReason, DroppedLore, KeyTextKind, LoreActivation, activate};
pub use entry::{CharacterFilter, CharacterText, EntryPosition, LoreEntry, MessageRole, SecondaryLogic};
pub(crate) use key::key_warnings;
pub use settings::{ChatLine, LoreScan, ScanSettings};
pub use slots::{DepthSlot, LoreSlots};
pub use timed_effects::{EffectPeriod, EntryEffects, TimedEffects};
