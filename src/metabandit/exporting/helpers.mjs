// The functions of metabandit.play.special in JavaScript; an exported module holds those it needs.

/* x to the power y: the square of any x, other powers of x >= 0 only; 0^0 = 1. */
function power(x, y) {
  if (y === 2) return x * x;
  if (x === 0 && y === 0) return 1;
  return Math.exp(y * Math.log(x));
}

/* The largest q with kl(mean, q) <= bound, for Bernoulli distributions. */
function klUpper(mean, bound) {
  if (!(mean >= -1e-12 && mean <= 1 + 1e-12) || Number.isNaN(bound)) return NaN;
  if (bound <= 0) return mean;
  if (mean >= 1) return 1;
  if (mean <= 1e-300) return -Math.expm1(-bound);
  // The search begins right of the solution: kl >= 2 d^2, and kl is at least its part in 1 - q.
  const rest = 1 - mean;
  const part = (bound - mean * Math.log(mean)) / rest;
  if (part > 40) return 1;
  let d = Math.min(Math.sqrt(0.5 * bound), rest * -Math.expm1(-part));
  if (mean >= 0.5 || mean + d <= 0.5) {
    // Then kl >= d^2 / (2 x (1 - x)), with x the nearest to 1/2 of mean and mean + d.
    const x = mean >= 0.5 ? mean : mean + d;
    d = Math.min(d, Math.sqrt(2 * bound * x * (1 - x)));
  }
  if (mean + d === mean) return mean;
  for (let i = 0; i < 60; i++) {
    const left = rest - d;
    if (left <= 0) return 1;
    const excess = -mean * Math.log1p(d / mean) - rest * Math.log1p(-d / rest) - bound;
    const q = mean + d;
    const newton = (excess * q * left) / d;
    const curvature = ((mean / (q * q) + rest / (left * left)) * q * left) / d;
    const step = newton / (1 - 0.5 * Math.min(Math.max(newton * curvature, -1), 1));
    d = step < d ? d - step : 0.5 * d;
    if (Math.abs(step) <= 1e-5 * Math.min(d, left)) break;
  }
  return mean + d;
}

/* ln gamma(x + 1) less Stirling's (x + 1/2) ln x - x + ln(2 pi)/2. */
function stirlingRest(x) {
  let product = 1;
  let z = x;
  while (z < 10) {
    z += 1;
    product *= z;
  }
  const v = 1 / (z * z);
  let rest = 1 / 1260 - v * (1 / 1680 - v * (1 / 1188 - v * (691 / 360360 - v / 156)));
  rest = (1 / 12 - v * (1 / 360 - v * rest)) / z;
  if (z === x) return rest;
  // From z back to x: gamma(x + 1) = gamma(z + 1) / ((x + 1) ... z).
  return rest + (z + 0.5) * Math.log(z) - (x + 0.5) * Math.log(x) - (z - x) - Math.log(product);
}

/* I(x; a, b) divided by x^a y^b / B(a, b), y = 1 - x: NIST handbook 8.17.22, two steps at a time. */
function betaFraction(x, y, a, b) {
  const spread = a * y - b * x + 1;
  let value = (a + 1) / (a * spread);
  let above = 0;
  let below = value;
  for (let m = 1; m < 10000; m++) {
    const down = a + 2 * m - 1;
    const numerator = ((a + m - 1) * (a + b + m - 1) * m * (b - m) * x * x) / (down * down);
    let denominator = m + (m * (b - m) * x) / down;
    denominator += ((a + m) * (spread + m * (1 + y))) / (down + 2);
    // Only ratios count, so that the last denominator can be kept at 1.
    const scale = denominator + numerator * below;
    const before = value;
    value = (denominator * value + numerator * above) / scale;
    above = before / scale;
    below = 1 / scale;
    if (!(Math.abs(value - before) > 1e-16 * value)) break;
  }
  return value;
}

/* About ln(x/(1 - x)) for the p-quantile x of Beta(a, b), p <= 1/2. */
function betaStart(p, a, b) {
  if (a >= 1 && b >= 1) {
    // The normal quantile, and the law of Fisher's z (Abramowitz and Stegun 26.2.22, 26.5.22).
    const t = Math.sqrt(-2 * Math.log(p));
    const z = (2.30753 + 0.27061 * t) / (1 + (0.99229 + 0.04481 * t) * t) - t;
    const u = 1 / (2 * a - 1);
    const v = 1 / (2 * b - 1);
    const k = (z * z - 3) / 6;
    const h = 2 / (u + v);
    const root = Math.sqrt(Math.max(h + k, 0.1));
    return Math.log(a / b) + (2 * z * root) / h + 2 * (v - u) * (k + 5 / 6 - 2 / (3 * h));
  }
  // The tails are powers of x and 1 - x; what is in each is about in these proportions.
  const left = Math.exp(a * Math.log(a / (a + b))) / a;
  const right = Math.exp(b * Math.log(b / (a + b))) / b;
  if (p * (left + right) < left) {
    const w = (Math.log(a * (left + right)) + Math.log(p)) / a;
    return w < -0.01 ? w - Math.log1p(-Math.exp(w)) : 4;
  }
  const w = (Math.log(b * (left + right)) + Math.log1p(-p)) / b;
  return w < -0.01 ? Math.log1p(-Math.exp(w)) - w : -4;
}

/* The p-quantile of the distribution Beta(a, b). */
function betaQuantile(p, a, b) {
  if (!(p >= 0 && p <= 1 && a > 0 && a < Infinity && b > 0 && b < Infinity)) return NaN;
  if (p === 0 || p === 1) return p;
  // With w = ln(x/(1 - x)) the density is x^a (1 - x)^b / B(a, b), whose logarithm is concave, and
  // so is that of the distribution: Halley's method solves for ln p, p the smaller tail.
  const swapped = p > 0.5;
  if (swapped) [p, a, b] = [1 - p, b, a];
  const n = a + b;
  let constant = 0.5 * Math.log((a / (2 * Math.PI)) * (b / n));
  constant += stirlingRest(n) - stirlingRest(a) - stirlingRest(b);
  let w = Math.min(Math.max(betaStart(p, a, b), -740), 740);
  let x = 0.5;
  let y = 0.5;
  for (let i = 0; i < 100; i++) {
    const odds = Math.exp(-Math.abs(w));
    y = 1 / (1 + odds);
    x = odds / (1 + odds);
    if (w > 0) [x, y] = [y, x];
    const d = b * x - a * y;
    // a ln(n x / a) + b ln(n y / b), where n x = a + d and n y = b - d.
    let density = a * (Math.abs(d) < 0.5 * a ? Math.log1p(d / a) : Math.log(x * (n / a)));
    density += b * (Math.abs(d) < 0.5 * b ? Math.log1p(-d / b) : Math.log(y * (n / b)));
    density += constant;
    let excess;
    let slope;
    if (x <= (a + 1) / (n + 2)) {
      const fraction = betaFraction(x, y, a, b);
      excess = density + Math.log(fraction) - Math.log(p);
      slope = 1 / fraction;
    } else {
      density = Math.exp(density);
      const inside = Math.max(1 - density * betaFraction(y, x, b, a), 1e-300);
      excess = Math.log(inside) - Math.log(p);
      slope = density / inside;
    }
    const newton = excess / slope;
    const step = newton / (1 + 0.5 * Math.min(Math.max(newton * (d + slope), -1), 1));
    // The last step is taken in x itself, whose digits w does not have where it is large.
    if (Math.abs(step) * (1 + Math.abs(d) + slope) <= 1e-5) {
      const change = x * y * step * (1 - 0.5 * (y - x) * step);
      return swapped ? y + change : x - change;
    }
    const before = w;
    w = Math.min(Math.max(w - step, -740), 740);
    if (w === before) break;
  }
  return swapped ? y : x;
}
