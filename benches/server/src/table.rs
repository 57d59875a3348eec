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
        what: &str,
        unit: &str,
        bare: Option<f64>,
        ours: f64,
        target: &FigureTarget,
    ) {
        if !self.has_header {
            self.has_header = true;
            println!("{:<54} {:>9} {:>9} {:>6}  target", "", "bare", "tambour", "ratio");
        }
        let ratio = bare.filter(|bare| *bare > 0.0).map(|bare| ours / bare);
        let (wanted, met) = match target {
            FigureTarget::Ratio(most) => (format!("<= {most} x"), ratio.map(|ratio| ratio <= *most)),
            FigureTarget::AtMost(most) => (format!("<= {most} {unit}"), Some(ours <= *most)),
            FigureTarget::AtMostMore(most) => {
                (format!("<= bare + {most} {unit}"), bare.map(|bare| ours - bare <= *most))
            }
            FigureTarget::None => (String::new(), None),
        };
        let judged = match met {
            Some(true) => "  met",
            Some(false) => "  MISSED",
            None => "",
        };
        self.missed_targets += usize::from(met == Some(false));
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
        let name = format!("{what}, {unit}");
        println!(
            "{name:<54} {:>9} {:>9} {:>6}  {wanted}{judged}",
            number(bare),
            number(Some(ours)),
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
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}
