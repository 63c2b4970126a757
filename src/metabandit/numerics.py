"""Special functions and random numbers in plain Python, which is also what kernels compile.

Only the standard library is used, and each special function calls only `math` and functions of this
file: an exported program can hold its text, or a translation (exporting/translation.py, which says
what it may be written in). Nothing here raises: what is no number is nan.

kl_upper: Newton's and Halley's methods in d = q - mean, in which the divergence
-mean ln(1 + d/mean) - (1 - mean) ln(1 - d/(1 - mean)) loses no digits for small bounds.

beta_quantile: with w = ln(x/(1 - x)) the density of w is x^a (1 - x)^b / B(a, b), whose logarithm is
concave; so is then that of the distribution function I. Halley's method solves ln I(w) = ln p for
p <= 1/2, the smaller tail. I is that density times a continued fraction, and the density comes from
the deviance of x from the mean and the remainders of Stirling's formula, which do not cancel as
three logarithms of the gamma function do.

beta_draw: Dixon's elliptic functions s(y) = sm y and c(y) = cm y have s^3 + c^3 = 1, s' = c^2, c' = -s^2 and, for
y between 0 and their period 1.7666, s and c above 0. If x = s(y)^3 has the distribution Beta(a, b), the
density of y is proportional to s^A c^B, where A = 3a - 1 and B = 3b - 1. Minus the second derivative of its
logarithm, h, changes with y by 2 (A + B) (x - p) (1 - x + x^2) / (x (1 - x)), where p = A / (A + B) is the x of the
mode: it is least at the mode, where it is 3 (A + B) s c. So the normal density with the mode and this h, times a constant,
is nowhere below that density: a normal variate is taken with the ratio of both as its probability, which is 0.92 for
a = b = 1 and goes to 1 (Marsaglia and Tsang's idea of 2000, which is the limit of large b).
For a below 1/2, x is drawn from Beta(a + 1, b): with probability b / (a + b), x u^(1/a) is the variate.

Random numbers are functions of the seed and of where they are used, not of when. Those below are the
simulator's for episode 0 (kernels/random.py has them over lanes, with the constants of this file), so
that a player meets ties and makes random plays as a simulated episode does, and its state is a count
of selections.
"""

import math

# What is left of a difference below this share of its terms is rounding: hundreds of roundings of float64.
LOST = 1e-13


def difference(x: float, y: float) -> float:
    """x - y, or 0 where that is lost beside x and y."""
    value = x - y
    return 0.0 if abs(value) < 1e-13 * (abs(x) + abs(y)) else value


def divide(x: float, y: float) -> float:
    """x / y, also for y = 0."""
    if y != 0.0:
        return x / y
    if x == 0.0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def sqrt(x: float) -> float:
    """The square root; nan below 0."""
    return math.sqrt(x) if x >= 0.0 else math.nan


def ln(x: float) -> float:
    """The natural logarithm; -inf at 0 and nan below."""
    if x > 0.0:
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan


def exp(x: float) -> float:
    """The exponential; inf where it is too large."""
    return math.inf if x > 709.78 else math.exp(x)


def power(x: float, y: float) -> float:
    """x to the power y: the square of any x, other powers of x >= 0 only; 0^0 = 1."""
    if y == 2.0:
        return x * x
    if x == 0.0 and y == 0.0:
        return 1.0
    return exp(y * ln(x))


def minimum(x: float, y: float) -> float:
    """The smaller; nan if one of them is."""
    return y if y < x or math.isnan(y) else x


def maximum(x: float, y: float) -> float:
    """The larger; nan if one of them is."""
    return y if y > x or math.isnan(y) else x


def kl_upper(mean: float, bound: float) -> float:
    """The largest q with kl(mean, q) <= bound, for Bernoulli distributions."""
    if not -1e-12 <= mean <= 1.0 + 1e-12 or math.isnan(bound):
        return math.nan
    if bound <= 0.0:
        return mean
    if mean >= 1.0:
        return 1.0
    if mean <= 1e-300:
        return -math.expm1(-bound)
    # The search begins right of the solution: kl >= 2 d^2, and kl is at least its part in 1 - q.
    rest = 1.0 - mean
    part = (bound - mean * math.log(mean)) / rest
    if part > 40.0:
        return 1.0
    d = min(math.sqrt(0.5 * bound), rest * -math.expm1(-part))
    if mean >= 0.5 or mean + d <= 0.5:
        # Then kl >= d^2 / (2 x (1 - x)), with x the nearest to 1/2 of mean and mean + d.
        x = mean if mean >= 0.5 else mean + d
        d = min(d, math.sqrt(2.0 * bound * x * (1.0 - x)))
    if mean + d == mean:
        return mean
    for _ in range(60):
        left = rest - d
        if left <= 0.0:
            return 1.0
        excess = -mean * math.log1p(d / mean) - rest * math.log1p(-d / rest) - bound
        q = mean + d
        newton = excess * q * left / d
        curvature = (mean / (q * q) + rest / (left * left)) * q * left / d
        step = newton / (1.0 - 0.5 * min(max(newton * curvature, -1.0), 1.0))
        d = d - step if step < d else 0.5 * d
        if abs(step) <= 1e-5 * min(d, left):
            break
    return mean + d


def stirling_rest(x: float) -> float:
    """ln gamma(x + 1) less Stirling's (x + 1/2) ln x - x + ln(2 pi)/2."""
    if x < 10.0:
        return math.lgamma(x + 1.0) - (x + 0.5) * math.log(x) + x - 0.5 * math.log(2.0 * math.pi)
    v = 1.0 / (x * x)
    rest = 1.0 / 1188.0 - v * (691.0 / 360360.0 - v / 156.0)
    rest = 1.0 / 1260.0 - v * (1.0 / 1680.0 - v * rest)
    return (1.0 / 12.0 - v * (1.0 / 360.0 - v * rest)) / x


def beta_fraction(x: float, y: float, a: float, b: float) -> float:
    """The incomplete Beta function I(x; a, b) divided by x^a y^b / B(a, b), where y = 1 - x.

    The continued fraction of the NIST handbook (8.17.22), two of its steps at a time.
    """
    spread = a * y - b * x + 1.0
    value = (a + 1.0) / (a * spread)
    above, below = 0.0, value
    for m in range(1, 10_000):
        down = a + 2.0 * m - 1.0
        numerator = (a + m - 1.0) * (a + b + m - 1.0) * m * (b - m) * x * x / (down * down)
        denominator = m + m * (b - m) * x / down
        denominator += (a + m) * (spread + m * (1.0 + y)) / (down + 2.0)
        # Only ratios count, so that the last denominator can be kept at 1.
        scale = denominator + numerator * below
        before = value
        value = (denominator * value + numerator * above) / scale
        above, below = before / scale, 1.0 / scale
        if not abs(value - before) > 1e-16 * value:
            break
    return value


def beta_constant(a: float, b: float) -> float:
    """What `beta_height` needs to know of a and b."""
    n = a + b
    constant = 0.5 * math.log(a / (2.0 * math.pi) * (b / n))
    return constant + (stirling_rest(n) - stirling_rest(a) - stirling_rest(b))


def beta_height(x: float, y: float, a: float, b: float, constant: float) -> float:
    """The logarithm of x^a y^b / B(a, b), where y = 1 - x."""
    n, d = a + b, b * x - a * y
    # a ln(n x / a) + b ln(n y / b), where n x = a + d and n y = b - d.
    height = a * (math.log1p(d / a) if abs(d) < 0.5 * a else math.log(x * (n / a)))
    height += b * (math.log1p(-d / b) if abs(d) < 0.5 * b else math.log(y * (n / b)))
    return height + constant


def beta_share(x: float, a: float, b: float, height: float) -> float:
    """The incomplete Beta function I(x; a, b), with the height of x."""
    if x <= (a + 1.0) / (a + b + 2.0):
        return math.exp(height) * beta_fraction(x, 1.0 - x, a, b)
    return 1.0 - math.exp(height) * beta_fraction(1.0 - x, x, b, a)


def beta_optimist(discount: float, a: float, b: float) -> float:
    """The optimistic Gittins index (Gutin, Farias 2016) of an arm with a Beta(a, b) mean u.

    The v with v = (1 - discount) E[u] + discount E[max(v, u)], E[max(v, u)] = v I(v; a, b) + E[u] (1 - I(v; a + 1, b)): the
    price at which one play breaks even that tells u itself. What is to be zero is concave and rises, so that
    Newton's method climbs to v from the mean.
    """
    if not (0.0 <= discount < 1.0 and 0.0 < a < math.inf and 0.0 < b < math.inf):
        return math.nan
    mean = a / (a + b)
    constant = beta_constant(a, b)
    v = mean
    for _ in range(200):
        if not 0.0 < v < 1.0:
            break
        height = beta_height(v, 1.0 - v, a, b, constant)
        below = beta_share(v, a, b, height)
        # I(v; a + 1, b) is I(v; a, b) - v^a (1 - v)^b / (a B(a, b)).
        larger = v * below + mean * (1.0 - below + math.exp(height) / a)
        step = ((1.0 - discount) * mean + discount * larger - v) / (1.0 - discount * below)
        v += step
        if step <= 1e-14 * v:
            break
    return min(v, 1.0)


def normal_optimist(discount: float) -> float:
    """The same for a mean with the standard normal distribution: v = discount E[max(v, u)]."""
    if not 0.0 <= discount < 1.0:
        return math.nan
    v = 0.0
    for _ in range(200):
        below = 0.5 * math.erfc(-v / math.sqrt(2.0))
        density = math.exp(-0.5 * v * v) / math.sqrt(2.0 * math.pi)
        step = (discount * (v * below + density) - v) / (1.0 - discount * below)
        v += step
        if step <= 1e-14:
            break
    return v


def beta_start(p: float, a: float, b: float) -> float:
    """About ln(x/(1 - x)) for the p-quantile x of Beta(a, b), p <= 1/2."""
    if a >= 1.0 and b >= 1.0:
        # The normal quantile, and the law of Fisher's z (Abramowitz and Stegun 26.2.22, 26.5.22).
        t = math.sqrt(-2.0 * math.log(p))
        z = (2.30753 + 0.27061 * t) / (1.0 + (0.99229 + 0.04481 * t) * t) - t
        u, v = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
        k = (z * z - 3.0) / 6.0
        h = 2.0 / (u + v)
        shift = z * math.sqrt(max(h + k, 0.1)) / h + (v - u) * (k + 5.0 / 6.0 - 2.0 / (3.0 * h))
        return math.log(a / b) + 2.0 * shift
    # The tails are powers of x and 1 - x; what is in each is about in these proportions.
    n = a + b
    left, right = math.exp(a * math.log(a / n)) / a, math.exp(b * math.log(b / n)) / b
    if p * (left + right) < left:
        w = (math.log(a * (left + right)) + math.log(p)) / a
        return w - math.log1p(-math.exp(w)) if w < -0.01 else 4.0
    w = (math.log(b * (left + right)) + math.log1p(-p)) / b
    return math.log1p(-math.exp(w)) - w if w < -0.01 else -4.0


def beta_quantile(p: float, a: float, b: float) -> float:
    """The p-quantile of the distribution Beta(a, b)."""
    if not (0.0 <= p <= 1.0 and 0.0 < a < math.inf and 0.0 < b < math.inf):
        return math.nan
    if p == 0.0 or p == 1.0:
        return p
    swapped = p > 0.5
    if swapped:
        p, a, b = 1.0 - p, b, a
    n = a + b
    constant = beta_constant(a, b)
    ln_p = math.log(p)
    w = min(max(beta_start(p, a, b), -740.0), 740.0)
    x = y = 0.5
    for _ in range(100):
        odds = math.exp(-abs(w))
        y, x = 1.0 / (1.0 + odds), odds / (1.0 + odds)
        if w > 0.0:
            x, y = y, x
        d = b * x - a * y
        density = beta_height(x, y, a, b, constant)
        if x <= (a + 1.0) / (n + 2.0):
            fraction = beta_fraction(x, y, a, b)
            excess = density + math.log(fraction) - ln_p
            slope = 1.0 / fraction
        else:
            density = math.exp(density)
            inside = max(1.0 - density * beta_fraction(y, x, b, a), 1e-300)
            excess = math.log(inside) - ln_p
            slope = density / inside
        newton = excess / slope
        step = newton / (1.0 + 0.5 * min(max(newton * (d + slope), -1.0), 1.0))
        # The last step is taken in x itself, whose digits w does not have where it is large.
        if abs(step) * (1.0 + abs(d) + slope) <= 1e-5:
            change = x * y * step * (1.0 - 0.5 * (y - x) * step)
            return y + change if swapped else x - change
        before = w
        w = min(max(w - step, -740.0), 740.0)
        if w == before:
            break
    return y if swapped else x


def normal_quantile(p: float) -> float:
    """The standard normal quantile (Wichura 1988, Algorithm AS 241, PPND16)."""
    if not 0.0 < p < 1.0:
        return -math.inf if p == 0.0 else math.inf if p == 1.0 else math.nan
    q = p - 0.5
    if abs(q) <= 0.425:
        c = 0.180625 - q * q
        above = 4.5921953931549871457e4 + c * (
            6.7265770927008700853e4 + c * (3.3430575583588128105e4 + c * 2.5090809287301226727e3)
        )
        above = 1.3314166789178437745e2 + c * (
            1.9715909503065514427e3 + c * (1.3731693765509461125e4 + c * above)
        )
        below = 2.1213794301586595867e4 + c * (
            3.9307895800092710610e4 + c * (2.8729085735721942674e4 + c * 5.2264952788528545610e3)
        )
        below = 4.2313330701600911252e1 + c * (
            6.8718700749205790830e2 + c * (5.3941960214247511077e3 + c * below)
        )
        return q * (3.3871328727963666080 + c * above) / (1.0 + c * below)
    d = math.sqrt(-math.log(min(p, 1.0 - p)))
    if d <= 5.0:
        d -= 1.6
        above = 1.27045825245236838258 + d * (
            2.41780725177450611770e-1
            + d * (2.27238449892691845833e-2 + d * 7.74545014278341407640e-4)
        )
        above = 4.63033784615654529590 + d * (
            5.76949722146069140550 + d * (3.64784832476320460504 + d * above)
        )
        below = 1.48103976427480074590e-1 + d * (
            1.51986665636164571966e-2
            + d * (5.47593808499534494600e-4 + d * 1.05075007164441684324e-9)
        )
        below = 2.05319162663775882187 + d * (
            1.67638483018380384940 + d * (6.89767334985100004550e-1 + d * below)
        )
        x = (1.42343711074968357734 + d * above) / (1.0 + d * below)
    else:
        d -= 5.0
        above = 2.65321895265761230930e-2 + d * (
            1.24266094738807843860e-3
            + d * (2.71155556874348757815e-5 + d * 2.01033439929228813265e-7)
        )
        above = 5.46378491116411436990 + d * (
            1.78482653991729133580 + d * (2.96560571828504891230e-1 + d * above)
        )
        below = 7.86869131145613259100e-4 + d * (
            1.84631831751005468180e-5
            + d * (1.42151175831644588870e-7 + d * 2.04426310338993978564e-15)
        )
        below = 5.99832206555887937690e-1 + d * (
            1.36929880922735805310e-1 + d * (1.48753612908506148525e-2 + d * below)
        )
        x = (6.65790464350110377720 + d * above) / (1.0 + d * below)
    return -x if q < 0.0 else x


def gamma_share(a: float, x: float) -> float:
    """The regularised lower incomplete gamma function P(a, x)."""
    if x <= 0.0:
        return 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:  # the series
        term = 1.0 / a
        total = term
        n = a
        while term > 1e-16 * total:
            n += 1.0
            term *= x / n
            total += term
        return min(front * total, 1.0)
    # The continued fraction of Q, by Lentz's method.
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    h = d
    for i in range(1, 10000):
        factor = -i * (i - a)
        b += 2.0
        d = 1.0 / (factor * d + b)
        c = b + factor / c
        h *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return 1.0 - front * h


def gamma_quantile(p: float, a: float) -> float:
    """The quantile of the gamma distribution of shape a and scale 1, by Halley's method."""
    if not (0.0 <= p <= 1.0 and a > 0.0):
        return math.nan
    if p == 0.0 or p == 1.0:
        return 0.0 if p == 0.0 else math.inf
    # Wilson, Hilferty; near 0 the first term of the series.
    root = 1.0 + normal_quantile(p) / (3.0 * math.sqrt(a)) - 1.0 / (9.0 * a)
    x = a * root * root * root
    small = math.exp((math.log(p) + math.lgamma(a + 1.0)) / a)
    if root <= 0.0 or x < small or small < 0.1 * a:
        x = small
    if x < 1e-300:
        return x
    for _ in range(60):
        slope = math.exp((a - 1.0) * math.log(x) - x - math.lgamma(a))
        if slope <= 0.0:
            break
        newton = (gamma_share(a, x) - p) / slope
        bend = min(max(newton * ((a - 1.0) / x - 1.0), -1.0), 1.0)
        after = x - newton / (1.0 - 0.5 * bend)
        after = min(max(after, 0.2 * x), 5.0 * x)
        if abs(after - x) <= 1e-12 * x:
            return after
        x = after
    return x


def poisson_quantile(p: float, mean: float) -> float:
    """The least whole number that a Poisson variate is at most with probability p; mean up to 700."""
    if not (0.0 <= p <= 1.0 and 0.0 <= mean <= 700.0):
        return math.nan
    chance = math.exp(-mean)
    total = chance
    k = 0.0
    # Rounding may keep the sum below p for ever.
    most = mean + 12.0 * math.sqrt(mean) + 40.0
    while total < p and k < most:
        k += 1.0
        chance *= mean / k
        total += chance
    return k


# Random numbers -------------------------------------------------------------------------------

_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
# Steps of the sequences of episodes, slots, pulls and streams.
WEYL_64 = 0x9E3779B97F4A7C15
SLOT = 0xD1B54A32D192ED03
WEYL_32 = 0x9E3779B9
STREAM = 0x85EBCA6B
# The multipliers of SplitMix64's finaliser and of the hash of 32 bits, and what tells the key of the
# randomness that is no reward from that of rewards.
MIX_A = 0xBF58476D1CE4E5B9
MIX_B = 0x94D049BB133111EB
HASH_A = 0x7FEB352D
HASH_B = 0x846CA68B
NOISE = 0x68BC21EB
# What tells the delay of a reward from the reward.
DELAY = 0x3C6EF372
# What tells the word of the lower bits of a reward's uniform number from that of the upper ones. With
# another key instead, the upper bits would say what the lower ones are.
FINE = 0xA54FF53A
# What tells further random numbers of a block of pulls from the rewards.
BLOCK = 0x510E527F
# Streams: what a random number of a selection is for.
TIES = 1
CHOICES = 2
ARMS = 16


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * MIX_A) & _MASK64
    x = ((x ^ (x >> 27)) * MIX_B) & _MASK64
    return x ^ (x >> 31)


def episode_seed(seed: int, episode: int) -> int:
    """The seed whose episode 0 is this episode of `seed`."""
    return (seed + episode * WEYL_64) & _MASK64


def word_of(seed: int, slot: int) -> int:
    """32 bits of episode 0 of a seed for a slot (0: its key; 1 + k: arm k)."""
    return _mix((_mix(seed & _MASK64) + slot * SLOT) & _MASK64) >> 32


def key_of(seed: int) -> int:
    """The key of episode 0 of a seed."""
    return word_of(seed, 0)


def bits(key: int, step: int, stream: int) -> int:
    """32 random bits of a selection."""
    x = (key + step * WEYL_32 + stream * STREAM) & _MASK32
    x ^= x >> 16
    x = (x * HASH_A) & _MASK32
    x ^= x >> 15
    x ^= key ^ NOISE
    x = (x * HASH_B) & _MASK32
    return x ^ (x >> 16)


def below(key: int, step: int, stream: int, limit: int) -> int:
    """A whole number from 0 to limit - 1."""
    return (bits(key, step, stream) * limit) >> 32


def unit(key: int, step: int, stream: int) -> float:
    """A uniform number strictly between 0 and 1."""
    return ((bits(key, step, stream) >> 9) + 0.5) * 1.1920928955078125e-07  # 2^-23


def beta_draw(a: float, b: float, key: int, step: int, stream: int) -> float:
    """ln(x / (1 - x)) for a variate x of Beta(a, b), from the streams from `stream` to `stream` + 5 of a selection."""
    rich, poor = (a if a >= 0.5 else a + 1.0), (b if b >= 0.5 else b + 1.0)
    A, B = 3.0 * rich - 1.0, 3.0 * poor - 1.0
    n = A + B
    s, c = (A / n) ** (1.0 / 3.0), (B / n) ** (1.0 / 3.0)
    spread = 1.0 / math.sqrt(3.0 * n * s * c)
    attempt = stream
    odds = 0.0
    while True:
        word = bits(key, step, attempt)
        z = normal_quantile(((word >> 9) + 0.5) * 1.1920928955078125e-07)
        d = 0.5 * spread * z
        if abs(d) < 0.85:
            # sm d and cm d by their series, then those of twice d, then those of the mode plus that.
            w = d * d * d
            sine = 1.0401121512232624e-3 - w * (1.8862799947456e-4 - w * 3.42110671947610e-5)
            sine = 1.0 / 6.0 - w * (2.0 / 63.0 - w * (13.0 / 2268.0 - w * sine))
            sine = d * (1.0 - w * sine)
            cosine = 25.0 / 13608.0 - w * (619.0 / 1857492.0 - w * 6.043842390109292e-5)
            cosine = 1.0 - w * (1.0 / 3.0 - w * (1.0 / 18.0 - w * (23.0 / 2268.0 - w * cosine)))
            w, cube = sine * sine * sine, cosine * cosine * cosine
            sine *= (1.0 + cube) / (cosine * (1.0 + w))
            cosine = (cube - w) / (cosine * (1.0 + w))
            over, under = 1.0 + c * c / s * sine * cosine, cosine * cosine - s * s / c * sine
            if over > 0.0 and under > 0.0:
                share = cosine + s * c * sine * sine
                ratio = A * math.log(over / share) + B * math.log(under / share) + 0.5 * z * z
                u = ((word & 511) + unit(key, step, attempt + 1)) / 512.0
                if math.log(u) < ratio:
                    odds = 3.0 * math.log(over / under * (s / c))
                    break
        attempt += 1 << 16
    if poor > b:
        odds = -_lessened(-odds, b, rich, key, step, stream + 2)
    return odds if rich == a else _lessened(odds, a, b, key, step, stream + 4)


def _lessened(odds: float, a: float, b: float, key: int, step: int, stream: int) -> float:
    """ln(x / (1 - x)) for a variate of Beta(a, b), given that of Beta(a + 1, b)."""
    v = (bits(key, step, stream) + unit(key, step, stream + 1)) / 4294967296.0
    kept = b / (a + b)
    if v >= kept:
        return odds
    ln_x = min(odds, 0.0) - math.log1p(math.exp(-abs(odds))) + math.log(v / kept) / a
    return ln_x - math.log(-math.expm1(ln_x)) if ln_x < -1e-300 else odds
