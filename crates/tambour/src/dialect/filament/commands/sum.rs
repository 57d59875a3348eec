//! Sums: numbers, `+ - * / %`, brackets, and a few functions.

use serde_json::Number;

/// Brackets within each other.
const DEPTH: usize = 32;

/// Bytes of a sum.
const LONGEST: usize = 256;

/// The result of a sum with 12 digits; `None` if the text is none.
pub(super) fn sum(text: &str) -> Option<Number> {
    if text.len() > LONGEST || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut sum = Sum { rest: text, depth: 0 };
    let result = sum.terms()?;
    sum.space();
    if !sum.rest.is_empty() || !result.is_finite() {
        return None;
    }
    let rounded: f64 = format!("{result:.11e}").parse().ok()?;
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
        return Some(Number::from(rounded as i64));
    }
    Number::from_f64(rounded)
}

struct Sum<'a> {
    rest: &'a str,
    depth: usize,
}

impl Sum<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, signs: &[char]) -> Option<char> {
        self.space();
        let sign = self.rest.chars().next().filter(|c| signs.contains(c))?;
        self.rest = &self.rest[sign.len_utf8()..];
        Some(sign)
    }

    fn terms(&mut self) -> Option<f64> {
        let mut result = self.factors()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.factors()?;
            result = if sign == '+' { result + next } else { result - next };
        }
        Some(result)
    }

    fn factors(&mut self) -> Option<f64> {
        let mut result = self.factor()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let next = self.factor()?;
            result = match sign {
                '*' => result * next,
                '/' => result / next,
                _ => result % next,
            };
        }
        Some(result)
    }

    fn factor(&mut self) -> Option<f64> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let result = match self.take(&['+', '-']) {
            Some('-') => -self.factor()?,
            Some(_) => self.factor()?,
            None => self.single()?,
        };
        self.depth -= 1;
        Some(result)
    }

    fn single(&mut self) -> Option<f64> {
        if self.take(&['(']).is_some() {
            return self.closed();
        }
        self.space();
        let rest =
            self.rest.strip_prefix("Math.").or_else(|| self.rest.strip_prefix("math.")).unwrap_or(self.rest);
        let len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        if len == 0 {
            return self.number();
        }
        let name = &rest[..len];
        self.rest = &rest[len..];
        self.take(&['('])?;
        let first = self.terms()?;
        let mut second = None;
        if self.take(&[',']).is_some() {
            second = Some(self.terms()?);
        }
        self.take(&[')'])?;
        Some(match (name, second) {
            ("sqrt", None) => first.sqrt(),
            ("abs", None) => first.abs(),
            ("round", None) => first.round(),
            ("floor", None) => first.floor(),
            ("ceil", None) => first.ceil(),
            ("min", Some(second)) => first.min(second),
            ("max", Some(second)) => first.max(second),
            ("pow", Some(second)) => first.powf(second),
            _ => return None,
        })
    }

    fn closed(&mut self) -> Option<f64> {
        let result = self.terms()?;
        self.take(&[')'])?;
        Some(result)
    }

    fn number(&mut self) -> Option<f64> {
        let len = self.rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let number = self.rest[..len].parse().ok()?;
        self.rest = &self.rest[len..];
        Some(number)
    }
}
