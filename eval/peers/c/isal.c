/* ISA-L's Reed-Solomon code over blocks, as fast as it goes: 10 sources and 4 parities of 1,400
 * bytes, in memory that stays in the cache.
 *
 *   peer-isal encode    the parities of a block, tables made before
 *   peer-isal decode    4 lost sources: its matrix is inverted and its tables are made for each block,
 *                       because which are lost is not known before
 *   peer-isal tables    the same, tables made before: as if always the same were lost
 *
 * Prints one line of JSON: ns of a block, of rounds of 200 blocks the one a tenth of them is faster
 * than. What came out is compared with what was lost.
 */

#include <isa-l/erasure_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { K = 10, R = 4, M = K + R, LEN = 1400, BLOCKS = 200, ROUNDS = 300 };

static unsigned char data[M][LEN] __attribute__((aligned(64)));
static unsigned char out[R][LEN] __attribute__((aligned(64)));
static unsigned char matrix[M * K];

static double now_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1e9 + at.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The first four sources are lost: what the others are multiplied by to give them. */
static int decoder(unsigned char *tables)
{
	unsigned char part[K * K], inverse[K * K];
	int row;

	for (row = 0; row < K; row++)
		memcpy(part + row * K, matrix + (R + row) * K, K);
	if (gf_invert_matrix(part, inverse, K) != 0)
		return -1;
	ec_init_tables(K, R, inverse, tables);
	return 0;
}

int main(int argc, char **argv)
{
	static unsigned char encode_tables[32 * K * R], decode_tables[32 * K * R];
	unsigned char *sources[K], *parities[R], *left[K], *found[R];
	static double rounds[ROUNDS];
	const char *what = argc == 2 ? argv[1] : "";
	int decodes = !strcmp(what, "decode"), tables = !strcmp(what, "tables");
	int at, round, block;

	if (!decodes && !tables && strcmp(what, "encode")) {
		fprintf(stderr, "usage: peer-isal encode|decode|tables\n");
		return 2;
	}
	srand(1);
	for (at = 0; at < K * LEN; at++)
		data[at / LEN][at % LEN] = rand();
	for (at = 0; at < K; at++)
		sources[at] = data[at], left[at] = data[R + at];
	for (at = 0; at < R; at++)
		parities[at] = data[K + at], found[at] = out[at];
	gf_gen_cauchy1_matrix(matrix, M, K);
	ec_init_tables(K, R, matrix + K * K, encode_tables);
	ec_encode_data(LEN, K, R, encode_tables, sources, parities);
	if (decoder(decode_tables))
		return 1;
	for (round = 0; round < ROUNDS; round++) {
		double start = now_ns();

		for (block = 0; block < BLOCKS; block++) {
			if (decodes && decoder(decode_tables))
				return 1;
			if (decodes || tables)
				ec_encode_data(LEN, K, R, decode_tables, left, found);
			else
				ec_encode_data(LEN, K, R, encode_tables, sources, parities);
		}
		rounds[round] = (now_ns() - start) / BLOCKS;
	}
	if ((decodes || tables) && memcmp(out, data, sizeof(out))) {
		fprintf(stderr, "peer-isal: what was computed is not what was lost\n");
		return 1;
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_size);
	printf("{\"ns\":%.1f}\n", rounds[ROUNDS / 10]);
	return 0;
}
