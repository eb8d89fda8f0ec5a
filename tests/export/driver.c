/* Draws from given words, one draw a line: the input, how many words, and the place and value of each.
   Prints the release, or "-"; after it how many words and how many entries of tables were looked at. */
#include <stddef.h>
static size_t looks;
#define SAMPLER_AT(array, place) (looks++, (array)[place])
#include "sampler.c"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct words {
    int count;
    size_t asked;
    int64_t place[4096];
    uint64_t word[4096];
};

static int given(void *state, int64_t place, uint64_t *word)
{
    struct words *words = state;
    words->asked++;
    for (int i = 0; i < words->count; i++)
        if (words->place[i] == place) {
            *word = words->word[i];
            return SAMPLER_OK;
        }
    return SAMPLER_RANDOM;
}

int main(void)
{
    static struct words words;
    int64_t x, released;
    while (scanf("%" SCNd64 " %d", &x, &words.count) == 2) {
        words.asked = looks = 0;
        for (int i = 0; i < words.count; i++)
            if (scanf("%" SCNd64 " %" SCNu64, &words.place[i], &words.word[i]) != 2)
                return 1;
        int code = sampler_draw(x, given, &words, &released);
        if (code == SAMPLER_RANDOM)
            return 2;
        if (code == SAMPLER_OK)
            printf("%" PRId64, released);
        else
            printf("-");
        printf(" %zu %zu\n", words.asked, looks);
    }
    return 0;
}
