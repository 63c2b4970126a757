"""The numbers of the machine's operations. Plain integers, so that reading them costs no numba.

An operator of the language has the number of its name in capitals; a person's own operator is
EXTERNAL (language/operators.py).
"""

COPY = 0
ADD = 1
SUBTRACT = 2
MULTIPLY = 3
DIVIDE = 4
MIN = 5
MAX = 6
SQRT = 7
LN = 8
ABS = 9
NEGATE = 10
INVERT = 11
EXP = 12
POWER = 13
KL_UPPER = 14
BETA_QUANTILE = 15
# A polynomial in four values is two instructions: the step program reduces its weights by the first
# value, which is the same in every lane; the lane program does the rest.
REDUCE = 16
POLYNOMIAL = 17
INVERT_SQRT = 18
# A call of a compiled function, whose address is in the last two numbers of the instruction.
EXTERNAL = 19
NORMAL_QUANTILE = 20
BETA_OPTIMIST = 21
NORMAL_OPTIMIST = 22
DIFFERENCE = 23

# Numbers per instruction: operation, target, three operands, and two more: the first coefficient and
# the degree, or the upper and lower half of an address.
WIDTH = 7

# A lane program's operands: the variables of an arm come first, then the registers.
LANE_VARIABLES = ("n", "r", "s", "w")
# A step program's operands: what is the same for all lanes comes first, then numbers and results.
STEP_VARIABLES = ("t", "h", "K")
# Register rows that the machine may use within one instruction.
SCRATCH = 3
