/* worker FOLDER: installed setuid root, it becomes another user for good, and waits. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[4096];
	signal(SIGHUP, SIG_IGN); /* the kernel asks nobody for permission to hang up */
	if (argc < 2 || setresgid(1, 1, 1) != 0 || setresuid(1, 1, 1) != 0)
		return 2;
	snprintf(path, sizeof path, "%s/worker", argv[1]);
	FILE *f = fopen(path, "w");
	if (f == NULL)
		return 2;
	fprintf(f, "%d", getpid());
	fclose(f);
	sleep(600);
	return 0;
}
