/* The functions of metabandit.play.special in C; an exported file holds those it needs. */

/* The smaller; nan if one of them is. */
static double minimum(double x, double y) {
  return y < x || y != y ? y : x;
}

/* The larger; nan if one of them is. */
static double maximum(double x, double y) {
  return y > x || y != y ? y : x;
}

/* x to the power y: the square of any x, other powers of x >= 0 only; 0^0 = 1. */
static double power(double x, double y) {
  if (y == 2.0) return x * x;
  if (x == 0.0 && y == 0.0) return 1.0;
  return exp(y * log(x));
}

/* The largest q with kl(mean, q) <= bound, for Bernoulli distributions. */
static double kl_upper(double mean, double bound) {
  if (!(mean >= -1e-12 && mean <= 1.0 + 1e-12) || bound != bound) return NAN;
  if (bound <= 0.0) return mean;
  if (mean >= 1.0) return 1.0;
  if (mean <= 1e-300) return -expm1(-bound);
  // The search begins right of the solution: kl >= 2 d^2, and kl is at least its part in 1 - q.
  const double rest = 1.0 - mean;
  const double part = (bound - mean * log(mean)) / rest;
  if (part > 40.0) return 1.0;
  double d = fmin(sqrt(0.5 * bound), rest * -expm1(-part));
  if (mean >= 0.5 || mean + d <= 0.5) {
    // Then kl >= d^2 / (2 x (1 - x)), with x the nearest to 1/2 of mean and mean + d.
    const double x = mean >= 0.5 ? mean : mean + d;
    d = fmin(d, sqrt(2.0 * bound * x * (1.0 - x)));
  }
  if (mean + d == mean) return mean;
  for (int i = 0; i < 60; i++) {
    const double left = rest - d;
    if (left <= 0.0) return 1.0;
    const double excess = -mean * log1p(d / mean) - rest * log1p(-d / rest) - bound;
    const double q = mean + d;
    const double newton = (excess * q * left) / d;
    const double curvature = ((mean / (q * q) + rest / (left * left)) * q * left) / d;
    const double step = newton / (1.0 - 0.5 * fmin(fmax(newton * curvature, -1.0), 1.0));
    d = step < d ? d - step : 0.5 * d;
    if (fabs(step) <= 1e-5 * fmin(d, left)) break;
  }
  return mean + d;
}

/* ln gamma(x + 1) less Stirling's (x + 1/2) ln x - x + ln(2 pi)/2. */
static double stirling_rest(double x) {
  if (x < 10.0) {
    return lgamma(x + 1.0) - (x + 0.5) * log(x) + x - 0.5 * log(2.0 * 3.141592653589793);
  }
  const double v = 1.0 / (x * x);
  const double series = 1.0 / 1188.0 - v * (691.0 / 360360.0 - v / 156.0);
  const double rest = 1.0 / 1260.0 - v * (1.0 / 1680.0 - v * series);
  return (1.0 / 12.0 - v * (1.0 / 360.0 - v * rest)) / x;
}

/* I(x; a, b) divided by x^a y^b / B(a, b), y = 1 - x: NIST handbook 8.17.22, two steps at a time. */
static double beta_fraction(double x, double y, double a, double b) {
  const double spread = a * y - b * x + 1.0;
  double value = (a + 1.0) / (a * spread);
  double above = 0.0;
  double below = value;
  for (int m = 1; m < 10000; m++) {
    const double down = a + 2.0 * m - 1.0;
    const double numerator = ((a + m - 1.0) * (a + b + m - 1.0) * m * (b - m) * x * x) / (down * down);
    double denominator = m + (m * (b - m) * x) / down;
    denominator += ((a + m) * (spread + m * (1.0 + y))) / (down + 2.0);
    // Only ratios count, so that the last denominator can be kept at 1.
    const double scale = denominator + numerator * below;
    const double before = value;
    value = (denominator * value + numerator * above) / scale;
    above = before / scale;
    below = 1.0 / scale;
    if (!(fabs(value - before) > 1e-16 * value)) break;
  }
  return value;
}

/* About ln(x/(1 - x)) for the p-quantile x of Beta(a, b), p <= 1/2. */
static double beta_start(double p, double a, double b) {
  if (a >= 1.0 && b >= 1.0) {
    // The normal quantile, and the law of Fisher's z (Abramowitz and Stegun 26.2.22, 26.5.22).
    const double t = sqrt(-2.0 * log(p));
    const double z = (2.30753 + 0.27061 * t) / (1.0 + (0.99229 + 0.04481 * t) * t) - t;
    const double u = 1.0 / (2.0 * a - 1.0);
    const double v = 1.0 / (2.0 * b - 1.0);
    const double k = (z * z - 3.0) / 6.0;
    const double h = 2.0 / (u + v);
    const double root = sqrt(fmax(h + k, 0.1));
    return log(a / b) + (2.0 * z * root) / h + 2.0 * (v - u) * (k + 5.0 / 6.0 - 2.0 / (3.0 * h));
  }
  // The tails are powers of x and 1 - x; what is in each is about in these proportions.
  const double left = exp(a * log(a / (a + b))) / a;
  const double right = exp(b * log(b / (a + b))) / b;
  if (p * (left + right) < left) {
    const double w = (log(a * (left + right)) + log(p)) / a;
    return w < -0.01 ? w - log1p(-exp(w)) : 4.0;
  }
  const double w = (log(b * (left + right)) + log1p(-p)) / b;
  return w < -0.01 ? log1p(-exp(w)) - w : -4.0;
}

/* The p-quantile of the distribution Beta(a, b). */
static double beta_quantile(double p, double a, double b) {
  if (!(p >= 0.0 && p <= 1.0 && a > 0.0 && a < INFINITY && b > 0.0 && b < INFINITY)) return NAN;
  if (p == 0.0 || p == 1.0) return p;
  // With w = ln(x/(1 - x)) the density is x^a (1 - x)^b / B(a, b), whose logarithm is concave, and
  // so is that of the distribution: Halley's method solves for ln p, p the smaller tail.
  const int swapped = p > 0.5;
  if (swapped) {
    const double first = a;
    p = 1.0 - p;
    a = b;
    b = first;
  }
  const double n = a + b;
  double constant = 0.5 * log((a / (2.0 * 3.141592653589793)) * (b / n));
  constant += stirling_rest(n) - stirling_rest(a) - stirling_rest(b);
  double w = fmin(fmax(beta_start(p, a, b), -740.0), 740.0);
  double x = 0.5;
  double y = 0.5;
  for (int i = 0; i < 100; i++) {
    const double odds = exp(-fabs(w));
    const double larger = 1.0 / (1.0 + odds);
    const double smaller = odds / (1.0 + odds);
    x = w > 0.0 ? larger : smaller;
    y = w > 0.0 ? smaller : larger;
    const double d = b * x - a * y;
    // a ln(n x / a) + b ln(n y / b), where n x = a + d and n y = b - d.
    double density = a * (fabs(d) < 0.5 * a ? log1p(d / a) : log(x * (n / a)));
    density += b * (fabs(d) < 0.5 * b ? log1p(-d / b) : log(y * (n / b)));
    density += constant;
    double excess;
    double slope;
    if (x <= (a + 1.0) / (n + 2.0)) {
      const double fraction = beta_fraction(x, y, a, b);
      excess = density + log(fraction) - log(p);
      slope = 1.0 / fraction;
    } else {
      density = exp(density);
      const double inside = fmax(1.0 - density * beta_fraction(y, x, b, a), 1e-300);
      excess = log(inside) - log(p);
      slope = density / inside;
    }
    const double newton = excess / slope;
    const double step = newton / (1.0 + 0.5 * fmin(fmax(newton * (d + slope), -1.0), 1.0));
    // The last step is taken in x itself, whose digits w does not have where it is large.
    if (fabs(step) * (1.0 + fabs(d) + slope) <= 1e-5) {
      const double change = x * y * step * (1.0 - 0.5 * (y - x) * step);
      return swapped ? y + change : x - change;
    }
    const double before = w;
    w = fmin(fmax(w - step, -740.0), 740.0);
    if (w == before) break;
  }
  return swapped ? y : x;
}
