//! Table of figures, each beside its target.

/// Target of a figure.
pub(crate) enum FigureTarget {
    /// At most this many times the figure of the bare mapper.
    Ratio(f64),
    /// At most this much.
    AtMost(f64),
    /// At most this much more than the bare mapper.
    AtMostMore(f64),
    None,
}

/// Printer of the table.
#[derive(Default)]
pub(crate) struct FigureTable {
    missed_targets: usize,
    has_header: bool,
}

impl FigureTable {
    /// Prints a line.
    pub(crate) fn print_line(
        &mut self,
        label: &str,
        unit: &str,
        bare: Option<f64>,
        our_value: f64,
        target: &FigureTarget,
    ) {
        if !self.has_header {
            self.has_header = true;
            println!("{:<54} {:>9} {:>9} {:>6}  target", "", "bare", "tambour", "ratio");
        }
        let ratio = bare.filter(|bare| *bare > 0.0).map(|bare| our_value / bare);
        let (target_text, is_met) = match target {
            FigureTarget::Ratio(max_ratio) => {
                (format!("<= {max_ratio} x"), ratio.map(|ratio| ratio <= *max_ratio))
            }
            FigureTarget::AtMost(max_ratio) => {
                (format!("<= {max_ratio} {unit}"), Some(our_value <= *max_ratio))
            }
            FigureTarget::AtMostMore(max_ratio) => {
                (format!("<= bare + {max_ratio} {unit}"), bare.map(|bare| our_value - bare <= *max_ratio))
            }
            FigureTarget::None => (String::new(), None),
        };
        let verdict = match is_met {
            Some(true) => "  met",
            Some(false) => "  MISSED",
            None => "",
        };
        self.missed_targets += usize::from(is_met == Some(false));
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
        let name = format!("{label}, {unit}");
        println!(
            "{name:<54} {:>9} {:>9} {:>6}  {target_text}{verdict}",
            number(bare),
            number(Some(our_value)),
            number(ratio)
        );
    }

    pub(crate) fn print_end(&self) {
        println!("\n{} missed", self.missed_targets);
    }
}

/// Median of `values`.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Quantile: the figure below which this share of `values` is.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
}
