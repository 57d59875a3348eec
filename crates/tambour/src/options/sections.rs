//! Storage for options of dialects. Each is a type of its own that only its folder knows.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Options of one dialect.
pub trait OptionSection: Any + Clone + Debug + Default + PartialEq + Send + Sync {}

impl<T: Any + Clone + Debug + Default + PartialEq + Send + Sync> OptionSection for T {}

/// Options that differ from their defaults, at most one value per type.
#[derive(Clone, Default)]
pub(crate) struct OptionSections(Vec<Arc<dyn StoredSection>>);

trait StoredSection: Any + Debug + Send + Sync {}

impl<T: OptionSection> StoredSection for T {}

impl OptionSections {
    pub(super) fn find<T: OptionSection>(&self) -> Option<&T> {
        self.0.iter().find_map(|section| {
            let section: &dyn Any = &**section;
            section.downcast_ref::<T>()
        })
    }

    pub(super) fn insert<T: OptionSection>(&mut self, section: T) {
        self.0.retain(|existing| {
            let existing: &dyn Any = &**existing;
            !existing.is::<T>()
        });
        if section != T::default() {
            self.0.push(Arc::new(section));
        }
    }
}

impl Debug for OptionSections {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
