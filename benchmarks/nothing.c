/* A product that is none, in place of BLAS: benchmarks/limit.py. */
void nothing(void) {}
